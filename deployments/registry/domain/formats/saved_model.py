"""TensorFlow's SavedModel: a folder with saved_model.pb and variables.

Triton's image has no TensorFlow since 25.03. Its OpenVINO backend reads the folder
(triton-inference-server/openvino_backend, README, "Loading non default model format").
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deployments.registry.domain import object_keys
from deployments.registry.domain.artifacts import files
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats import openvino
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
    head_of,
)
from deployments.registry.domain.signatures import Backend, Signature, parameter_facts

GRAPH: Final = "saved_model.pb"
_TASK: Final = "deployments.registry.domain.saved_model.reading:read"
_DIRECTORY: Final = "model.saved_model"
# saved_model_schema_version 1, or a first graph where the version is not written.
_BEGINNINGS: Final = (b"\x08\x01\x12", b"\x12")
# What serving reads of the folder; debug information and Keras' own metadata are left out.
_SERVED: Final = ("variables/", "assets/")


def _detect(artifact: Artifact) -> str | None:
    top = files.common_folder(artifact.sizes)
    path = f"{top}/{GRAPH}" if top else GRAPH
    if path not in artifact.sizes:
        return None
    head = head_of(artifact, path)
    return path if not head or head.startswith(_BEGINNINGS) else None


def _conclude(facts: Mapping[str, Any], context: Context) -> Inspection:
    weights = int(facts["variables_bytes"]) + int(facts["graph_bytes"])
    signature = Signature(
        inputs=openvino.tensors(facts["inputs"]),
        outputs=openvino.tensors(facts["outputs"]),
        facts={
            "batching": openvino.BATCHING,
            **parameter_facts(facts["parameters"]),
            "producer": f"TensorFlow {facts['tensorflow']}".strip(),
        },
        backend=Backend(name=openvino.BACKEND, model_file=_DIRECTORY, is_file_named=True),
    )
    folder = context.main.removesuffix(GRAPH)
    target = object_keys.model_file_key("", context.model, _DIRECTORY)
    names = (path.removeprefix(folder) for path in context.paths if path.startswith(folder))
    layout = {
        f"{target}/{name}": f"{folder}{name}"
        for name in names
        if name in (GRAPH, "fingerprint.pb") or name.startswith(_SERVED)
    }
    count = f"{len(signature.inputs):,} in, {len(signature.outputs):,} out"
    details = {"Inputs and outputs": f"{count}, from the signature serving_default"}
    return openvino.inspection(signature, weights, details, layout)


SAVED_MODEL: Final = Format(
    key="saved_model",
    name="TensorFlow SavedModel",
    detect=_detect,
    reading=ArtifactReading(_TASK, _conclude),
)
