"""Read an uploaded ONNX file and load it with ONNX Runtime, both in the sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys, onnx_facts
from deployments.registry.domain.formats import onnx
from deployments.registry.domain.formats.catalogue import Detected
from deployments.registry.domain.formats.format import Inspection
from deployments.registry.domain.not_servable import quote
from deployments.registry.domain.onnx_facts import OnnxFacts
from deployments.registry.services.examination import sandboxed_steps, use_examination
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import refuse_step


def examine(
    version: ModelVersion,
    path: Path,
    detected: Detected,
    sizes: Mapping[str, int],
    checklist: Checklist,
) -> tuple[Inspection, str]:
    """Return the inspection, and the reason for a quarantine, or empty. `sizes` are the bytes of all files by
    path, which lie beside `path` as in the artifact. Raises FileRefused, ReaderDied and LeaseLost.
    """
    folder = onnx.folder_of(detected.main)
    beside = {
        name.removeprefix(folder): size
        for name, size in sizes.items()
        if name.startswith(folder) and name != detected.main
    }
    facts = read(version, path, checklist, beside)
    quarantine_reason = load(version, path, facts, checklist)
    use = use_examination.examine(version, path, facts, checklist, can_run=not quarantine_reason)
    name = version.model.name
    target = object_keys.model_file_key("", name, use.signature.backend.model_file)
    directory = target.rpartition("/")[0]
    layout = {f"{directory}/{file}": f"{folder}{file}" for file in facts.external_files}
    if target in layout:
        raise refuse_step(
            checklist,
            "Inputs and outputs",
            f"A file of weights is named {use.signature.backend.model_file}, the name of the graph in the "
            "serving repository. Rename it and save the model again.",
        )
    layout[target] = detected.main
    return Inspection(use.signature, use.estimate, details={}, layout=layout), quarantine_reason


def read(
    version: ModelVersion,
    path: Path,
    checklist: Checklist,
    beside: Mapping[str, int] | None = None,
) -> OnnxFacts:
    """Read the graph in the sandbox. `beside` are the other files below the folder of `path`, with their sizes."""
    step = "Inputs and outputs"
    checklist.running(step, "reading the graph without running it")
    answer = sandboxed_steps.run(
        "deployments.registry.domain.onnx:read_facts",
        path,
        version=version,
        step=step,
        checklist=checklist,
        argument={"files": dict(beside or {})},
    )
    facts = onnx_facts.from_json(answer)
    signature = facts.signature
    batches = "dynamic batch dimension" if signature.is_batched else "no batch dimension"
    checklist.pass_step(
        step,
        f"{len(signature.inputs):,} in, {len(signature.outputs):,} out, {batches}, "
        f"{facts.parameter_count:,} parameters{_describe_external(facts)}",
    )
    return facts


def load(version: ModelVersion, path: Path, facts: OnnxFacts, checklist: Checklist) -> str:
    """Load the model. Returns the reason for a quarantine if loading cannot be verified here, or empty."""
    step = "Runtime"
    custom = _custom_operators(facts)
    if custom:
        checklist.warn_step(step, custom)
        return custom
    checklist.running(step, "loading the model with ONNX Runtime")
    loaded = sandboxed_steps.run(
        "deployments.registry.domain.onnx_loading:load",
        path,
        version=version,
        step=step,
        checklist=checklist,
        argument={"opset": facts.opset},
        file_bytes=facts.external_bytes,
    )
    if loaded["missing_kernel"]:
        reason = (
            f"ONNX Runtime {loaded['runtime']} has no processor kernel for an operator of this "
            f"model ({loaded['missing_kernel']}) GPU support cannot be verified here: convert "
            "the model to fp32 or fp16, or ask a platform admin to release it."
        )
        checklist.warn_step(step, reason)
        return reason
    _compare_names(loaded, facts, step, checklist)
    checklist.pass_step(step, f"ONNX Runtime {loaded['runtime']} loads it")
    return ""


def _describe_external(facts: OnnxFacts) -> str:
    if not facts.external_files:
        return ""
    count = len(facts.external_files)
    files = "1 file" if count == 1 else f"{count:,} files"
    return f", weights in {files} of {facts.external_bytes:,} bytes"


def _compare_names(
    loaded: dict[str, Any], facts: OnnxFacts, step: str, checklist: Checklist
) -> None:
    """Check that inputs and outputs of the file match those that the runtime reports. Raises FileRefused."""
    signature = facts.signature
    for kind, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        differing = sorted({tensor.name for tensor in tensors} ^ set(loaded[kind]))
        if differing:
            raise refuse_step(
                checklist,
                step,
                f"The {kind} in the file differ from those that ONNX Runtime reports: "
                f"{quote(differing[0])}. Export the model again.",
            )


def _custom_operators(facts: OnnxFacts) -> str:
    if not facts.custom_domains:
        return ""
    names = ", ".join(facts.custom_domains)
    return (
        f"The graph uses operators of {names}, which ONNX Runtime does not have. They need a "
        "custom native library. Export with standard operators only."
    )
