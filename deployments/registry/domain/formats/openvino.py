"""OpenVINO: a graph in XML and its weights in a file of the same name with .bin. Triton serves it on the CPU.

Its backend refuses instances on a GPU, and batches of another size than max_batch_size
(triton-inference-server/openvino_backend, src/openvino.cc), so none are formed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from deployments.registry.domain import object_keys
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.format import (
    ArtifactReading,
    Context,
    Format,
    Inspection,
    head_of,
)
from deployments.registry.domain.signatures import Backend, Signature, Tensor, parameter_facts
from deployments.sizing.domain.onnx import MIB, VramEstimate

BACKEND: Final = "openvino"
BATCHING: Final = (
    "none: OpenVINO's backend takes batches of one size only. A request may hold several rows where "
    "the first dimension is dynamic."
)
_TASK: Final = "deployments.registry.domain.openvino.reading:read"
_MODEL_FILE: Final = "model.xml"
_NET: Final = re.compile(
    rb'\s*(<\?xml[^>]{0,200}\?>\s*)?(<!--.{0,1000}?-->\s*)?<net\s[^>]*version="1[01]"', re.DOTALL
)


def inspection(
    signature: Signature, weights: int, details: Mapping[str, str], layout: Mapping[str, str]
) -> Inspection:
    """Describe a model that the OpenVINO backend serves: no memory of a GPU is used."""
    estimate = VramEstimate(weights_mib=0, activations_mib=0, spread_mib=0, runtime_mib=0)
    lines = {
        **details,
        "Runtime": "Triton's OpenVINO backend loads it, on the CPU of the pod; not loaded here. The GPU "
        "of a replica stays unused",
        "Batching": BATCHING,
        "GPU memory": f"none; its {-(-weights // MIB):,} MiB of weights are in the memory of the pod.",
    }
    return Inspection(signature, estimate, lines, layout)


def _detect(artifact: Artifact) -> str | None:
    """Detect the one XML of the artifact, if it is a model. Whether its weights are there is read later."""
    graphs = [path for path in artifact.sizes if path.lower().endswith(".xml")]
    paths = graphs or (list(artifact.sizes) if len(artifact.sizes) == 1 else [])
    if len(paths) != 1:
        return None
    return paths[0] if _NET.match(head_of(artifact, paths[0])) else None


def _conclude(facts: Mapping[str, Any], context: Context) -> Inspection:
    signature = Signature(
        inputs=tensors(facts["inputs"]),
        outputs=tensors(facts["outputs"]),
        facts={"batching": BATCHING, **parameter_facts(facts["parameters"])},
        backend=Backend(name=BACKEND, model_file=_MODEL_FILE),
    )
    weights = f"{context.main.removesuffix('.xml')}.bin"
    target = object_keys.model_file_key("", context.model, _MODEL_FILE)
    layout = {target: context.main}
    if weights in context.paths:
        layout[f"{target.removesuffix('.xml')}.bin"] = weights
    details = {
        "Inputs and outputs": f"{len(signature.inputs):,} in, {len(signature.outputs):,} out, "
        f"{facts['layers']:,} layers"
    }
    return inspection(signature, int(facts["weights"]), details, layout)


def tensors(rows: list[Mapping[str, Any]]) -> tuple[Tensor, ...]:
    return tuple(Tensor(row["name"], row["dtype"], tuple(row["dims"])) for row in rows)


OPENVINO: Final = Format(
    key="openvino",
    name="OpenVINO",
    detect=_detect,
    reading=ArtifactReading(_TASK, _conclude),
)
