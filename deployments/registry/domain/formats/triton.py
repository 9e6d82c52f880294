"""Triton model repositories: of one model or of several, of which an ensemble or a named one is served.

With code (model.py of the Python backend, dali.py) they are a format of their own, because a platform
admin has to release it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from deployments.registry.domain import object_keys, signatures
from deployments.registry.domain.artifacts.reading import Artifact
from deployments.registry.domain.formats.format import ArtifactReading, Context, Format, Inspection
from deployments.registry.domain.signatures import ENSEMBLE, FURTHER_MODELS, Signature
from deployments.registry.domain.triton_repository import layout
from deployments.sizing.domain.onnx import MIB, VramEstimate

_TASK: Final = "deployments.registry.domain.triton_repository.reading:read"
_CODE_SUFFIXES: Final = (".py", ".pyc", ".so")
# Triton needs the directory of the version, and a bucket has no empty directories.
_PLACEHOLDER: Final = "An ensemble has no files: Triton needs the directory of its version.\n"


def _detect(artifact: Artifact, *, has_code: bool) -> str | None:
    folders = layout.find(artifact.sizes)
    files = [path for folder in folders for path in folder.files]
    is_match = any(path.lower().endswith(_CODE_SUFFIXES) for path in files) == has_code
    return "" if folders and is_match else None


def _conclude(facts: Mapping[str, Any], context: Context) -> Inspection:
    models: Sequence[Mapping[str, Any]] = facts["models"]
    names = {model["name"]: model["name"] for model in models} | {models[0]["name"]: context.model}
    signature = signatures.from_json(facts["signature"])
    files_mib = -(-sum(model["bytes"] for model in models) // MIB)
    estimate = VramEstimate(weights_mib=files_mib, activations_mib=0, spread_mib=0)
    copied: dict[str, str] = {}
    generated = {object_keys.config_key("", context.model): signature.backend.config}
    for model in models:
        directory = object_keys.model_directory("", names[model["name"]])
        generated.setdefault(f"{directory}config.pbtxt", model["config"])
        copied |= {f"{directory}{path}": source for path, source in model["files"].items()}
        if model["backend"] == ENSEMBLE and not any(path[0].isdigit() for path in model["files"]):
            generated[f"{directory}{model['versions'][0]}/ensemble.txt"] = _PLACEHOLDER
    return Inspection(
        _with_facts(signature, models),
        estimate,
        _details(facts, estimate, context.model),
        copied,
        generated,
    )


def _with_facts(signature: Signature, models: Sequence[Mapping[str, Any]]) -> Signature:
    """Add the facts to the signature. FURTHER_MODELS and the batching are shown, and checked before a
    deployment.
    """
    batching = (
        f"up to {signature.max_batch_size}, as config.pbtxt states"
        if signature.is_batched
        else "none, as config.pbtxt states"
    )
    further = [str(model["name"]) for model in models[1:]]
    facts = {**signature.facts, "batching": batching}
    facts |= {FURTHER_MODELS: further} if further else {}
    return Signature(
        signature.inputs, signature.outputs, signature.max_batch_size, facts, signature.backend
    )


def _details(facts: Mapping[str, Any], estimate: VramEstimate, name: str) -> dict[str, str]:
    models: Sequence[Mapping[str, Any]] = facts["models"]
    signature = signatures.from_json(facts["signature"])
    tensors = f"{len(signature.inputs):,} in, {len(signature.outputs):,} out, from config.pbtxt"
    further = ", ".join(str(model["name"]) for model in models[1:])
    loaded = f"; {models[0]['name']} is served as {name}, with {further}" if further else ""
    batching = f"up to {signature.max_batch_size}" if signature.is_batched else "none"
    return {
        "Inputs and outputs": tensors + loaded,
        "Runtime": "; ".join(_runtime_notes(facts)),
        "Batching": f"{batching}, as config.pbtxt states",
        "GPU memory": f"about {estimate.total_mib:,} MiB: files {estimate.weights_mib:,}, runtime "
        f"{estimate.runtime_mib:,}. Files that a model reads into several copies use more.",
    }


def _runtime_notes(facts: Mapping[str, Any]) -> list[str]:
    models: Sequence[Mapping[str, Any]] = facts["models"]
    notes = [", ".join(f"{model['name']}: {model['backend']}" for model in models)]
    silent = [str(model["name"]) for model in models if not model["states_gpu"]]
    if silent:
        notes.append(
            f"{', '.join(silent)}: no KIND_GPU in instance_group, so Triton uses the CPU without a "
            "message if it has no GPU"
        )
    notes += [
        f"{model['name']}: environment of {-(-model['environment_bytes'] // MIB):,} MiB, unpacked at "
        "each start"
        for model in models
        if model["environment_bytes"]
    ]
    if facts["outside"]:
        notes.append(f"not served: {', '.join(facts['outside'][:5])}")
    return notes


def _repository(key: str, name: str, *, has_code: bool) -> Format:
    return Format(
        key=key,
        name=name,
        detect=lambda artifact: _detect(artifact, has_code=has_code),
        has_code=has_code,
        reading=ArtifactReading(_TASK, _conclude),
    )


TRITON: Final = _repository("triton", "Triton repository", has_code=False)
TRITON_WITH_CODE: Final = _repository(
    "triton_code", "Triton repository with Python code", has_code=True
)
