"""A plan of TensorRT (`model.plan`, also named .engine and .trt), bound to a version of TensorRT and to a GPU.

NVIDIA documents the beginning of the header only (NVIDIA/TensorRT, samples/common/sampleEngines.cpp,
`printPlanVersion`): a tag, a serialization version, and for version 0 TensorRT's version in bytes 24 to 27. The
GPU is not among it, so the uploader declares its compute capability, as inputs and outputs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import declared_models
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
    single_file,
)
from deployments.registry.domain.not_servable import NeedsDeclaration, NotServable
from deployments.registry.domain.signatures import Backend

COMPUTE_CAPABILITY: Final = "compute_capability"
# 0x74727466, little-endian.
_TAG: Final = b"ftrt"
_HEADER_BYTES: Final = 28
_VERSION_AT: Final = 24
_TASK: Final = "deployments.registry.domain.formats.tensorrt:read"
_MAX_METADATA_BYTES: Final = 2**20


def read(argument: Mapping[str, Any], artifact: Artifact) -> dict[str, Any]:
    """Read a plan in the sandbox: {"main"} to TensorRT's version (empty if unknown) and the size. Raises
    NotServable.
    """
    main = str(argument["main"])
    header = artifact.read(main, 0, _HEADER_BYTES)
    if len(header) < _HEADER_BYTES:
        raise NotServable("The plan is cut off: its header is incomplete. Build it again.")
    is_known = int.from_bytes(header[4:8], "little") == 0
    version = ".".join(map(str, header[_VERSION_AT:_HEADER_BYTES])) if is_known else ""
    return {"tensorrt": version, "bytes": artifact.sizes[main]}


def _conclude(facts: Mapping[str, Any], context: Context) -> Inspection:
    built = f"Built with TensorRT {facts['tensorrt']}" if facts["tensorrt"] else "A TensorRT plan"
    declared_models.require(context, f"{built}; its header states no inputs and outputs.")
    if not context.compute_capability:
        raise NeedsDeclaration(
            f"{built}; its header does not say for which GPU. Declare the compute capability, such as 8.6 for "
            "A10G."
        )
    return declared_models.inspection(
        context,
        Backend(name="tensorrt", model_file="model.plan"),
        weights_bytes=int(facts["bytes"]),
        facts={
            COMPUTE_CAPABILITY: context.compute_capability,
            "producer": f"TensorRT {facts['tensorrt']}".strip(),
        },
        details={
            "Runtime": f"{built} for compute capability {context.compute_capability} (declared by the uploader); "
            "Triton's image needs the same version of TensorRT. Not loaded here"
        },
    )


def _has_metadata(artifact: Artifact) -> str | None:
    """Return whether metadata precedes the plan: Ultralytics writes the length of a JSON object (4 bytes) and
    the object before it.
    """
    if len(artifact.sizes) != 1:
        return None
    path = next(iter(artifact.sizes))
    head = artifact.read(path, 0, 5)
    length = int.from_bytes(head[:4], "little")
    if head[4:] != b"{" or length > _MAX_METADATA_BYTES:
        return None
    return path if artifact.read(path, 4 + length, len(_TAG)) == _TAG else None


TENSORRT: Final = Format(
    key="tensorrt",
    name="TensorRT plan",
    detect=single_file(lambda head, _: head.startswith(_TAG)),
    endings=(".plan", ".engine", ".trt"),
    is_declared=True,
    reading=ArtifactReading(_TASK, _conclude),
)
WITH_METADATA: Final = Format(
    key="tensorrt_metadata",
    name="a TensorRT plan with metadata before it, as Ultralytics writes it",
    detect=_has_metadata,
    advice="Triton reads the plan only. Remove what is before it: data = open('model.engine', 'rb').read(); "
    "open('model.plan', 'wb').write(data[4 + int.from_bytes(data[:4], 'little'):]).",
)
