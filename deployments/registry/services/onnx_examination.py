"""Read an uploaded ONNX file and load it with ONNX Runtime, both in the sandbox."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deployments.models import ModelVersion
from deployments.registry.domain import onnx_facts
from deployments.registry.domain.not_servable import quoted
from deployments.registry.domain.onnx_facts import OnnxFacts
from deployments.registry.services import sandboxed_steps
from deployments.registry.services.checklist import Checklist
from deployments.registry.services.sandboxed_steps import refused


def read(version: ModelVersion, path: Path, checklist: Checklist) -> OnnxFacts:
    step = "Inputs and outputs"
    checklist.running(step, "reading the graph without running it")
    answer = sandboxed_steps.run(
        "deployments.registry.domain.onnx:read_facts",
        path,
        version=version,
        step=step,
        checklist=checklist,
    )
    facts = onnx_facts.from_json(answer)
    signature = facts.signature
    batches = "dynamic batch dimension" if signature.is_batched else "no batch dimension"
    checklist.passed(
        step,
        f"{len(signature.inputs):,} in, {len(signature.outputs):,} out, {batches}, "
        f"{facts.parameter_count:,} parameters",
    )
    return facts


def load(version: ModelVersion, path: Path, facts: OnnxFacts, checklist: Checklist) -> str:
    """Load the model. Returns the reason for a quarantine if loading cannot be verified here, or empty."""
    step = "Runtime"
    custom = _custom_operators(facts)
    if custom:
        checklist.warned(step, custom)
        return custom
    checklist.running(step, "loading the model with ONNX Runtime")
    loaded = sandboxed_steps.run(
        "deployments.registry.domain.onnx_loading:load",
        path,
        version=version,
        step=step,
        checklist=checklist,
    )
    if loaded["missing_kernel"]:
        reason = (
            f"ONNX Runtime {loaded['runtime']} has no processor kernel for an operator of this "
            f"model ({loaded['missing_kernel']}) GPU support cannot be verified here: convert "
            "the model to fp32 or fp16, or ask a platform admin to release it."
        )
        checklist.warned(step, reason)
        return reason
    _compare_names(loaded, facts, step, checklist)
    checklist.passed(step, f"ONNX Runtime {loaded['runtime']} loads it")
    return ""


def _compare_names(
    loaded: dict[str, Any], facts: OnnxFacts, step: str, checklist: Checklist
) -> None:
    """Inputs and outputs of the file must match those that the runtime reports."""
    signature = facts.signature
    for kind, tensors in (("inputs", signature.inputs), ("outputs", signature.outputs)):
        differing = sorted({tensor.name for tensor in tensors} ^ set(loaded[kind]))
        if differing:
            raise refused(
                checklist,
                step,
                f"The {kind} in the file differ from those that ONNX Runtime reports: "
                f"{quoted(differing[0])}. Export the model again.",
            )


def _custom_operators(facts: OnnxFacts) -> str:
    if not facts.custom_domains:
        return ""
    names = ", ".join(facts.custom_domains)
    return (
        f"The graph uses operators of {names}, which ONNX Runtime does not have. They need a "
        "custom native library. Export with standard operators only."
    )
