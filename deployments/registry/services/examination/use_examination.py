"""Check batching by a trial run in the sandbox, and estimate GPU memory."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from deployments.models import ModelVersion
from deployments.registry.domain import batching, declarations, input_sizes
from deployments.registry.domain.batching import BatchingVerdict
from deployments.registry.domain.declarations import Declaration
from deployments.registry.domain.input_sizes import InputSizes
from deployments.registry.domain.onnx_facts import OnnxFacts
from deployments.registry.domain.signatures import Signature
from deployments.registry.gateways import sandbox
from deployments.registry.gateways.sandbox import Broken, Died, Finished, Refused, SandboxLimits
from deployments.registry.services.examination.checklist import Checklist
from deployments.registry.services.examination.sandboxed_steps import refuse_step
from deployments.sizing.domain import onnx
from deployments.sizing.domain.onnx import VramEstimate

logger = logging.getLogger(__name__)

_TRIAL: Final = "deployments.registry.domain.batching_trial:run"
_ACTIVATIONS: Final = "deployments.sizing.domain.activations:measure"
# Added to the limits of reading. A trial that exceeds them is inconclusive.
_TRIAL_CPU_SECONDS: Final = 25.0
_TRIAL_MEMORY_BYTES: Final = 2**30
_LARGEST_ESTIMATE_MIB: Final = 2**24


@dataclass(frozen=True, slots=True)
class UseExamination:
    """The result of the examination. `signature` is the one for serving."""

    signature: Signature
    estimate: VramEstimate


def examine(
    version: ModelVersion, path: Path, facts: OnnxFacts, checklist: Checklist, *, can_run: bool
) -> UseExamination:
    """Decide the batching and estimate the memory. `can_run` says whether the runtime loaded the model. Raises
    FileRefused if no GPU has enough memory, and LeaseLost.
    """
    declaration = declarations.from_json(version.declared)
    signature = _decide_batching(path, facts, declaration, checklist, can_run=can_run)
    return _estimate_memory(path, facts, signature, declaration, checklist)


def _decide_batching(
    path: Path,
    facts: OnnxFacts,
    declaration: Declaration,
    checklist: Checklist,
    *,
    can_run: bool,
) -> Signature:
    suggested = facts.signature
    verdict, reason = BatchingVerdict.NONE, ""
    if suggested.is_batched:
        verdict, reason = BatchingVerdict.UNKNOWN, "The model cannot run here."
    if suggested.is_batched and can_run and declaration.supports_batching is not False:
        checklist.running("Batching", "comparing single and batched requests")
        verdict, reason = _run_trial(path, facts, declaration, checklist)
    decision = batching.decide(
        verdict,
        reason,
        is_declared=declaration.supports_batching,
        largest=declaration.max_batch_size,
    )
    checklist.pass_step("Batching", decision.reason)
    return replace(
        suggested,
        max_batch_size=decision.max_batch_size,
        facts={**suggested.facts, "batching": decision.reason},
    )


def _run_trial(
    path: Path, facts: OnnxFacts, declaration: Declaration, checklist: Checklist
) -> tuple[BatchingVerdict, str]:
    """Run the batching trial. A crash here is no failure: a valid model may need more than these limits."""
    outcome = sandbox.run(
        _TRIAL,
        {
            "path": str(path),
            "max_batch_size": declaration.max_batch_size,
            "sizes": {name: list(dims) for name, dims in declaration.largest_inputs.items()},
        },
        limits=_limits(path, facts),
        while_running=checklist.keep_alive,
    )
    match outcome:
        case Finished(value):
            return BatchingVerdict(value["verdict"]), str(value["reason"])
        case Died(_, detail):
            return BatchingVerdict.UNKNOWN, f"The test was stopped: {detail}."
        case Broken(_):
            return BatchingVerdict.UNKNOWN, "Running it failed."
        case Refused(message):
            return BatchingVerdict.UNKNOWN, f"Running it failed: {message[:300].rstrip('.')}."


def _limits(path: Path, facts: OnnxFacts) -> SandboxLimits:
    limits = sandbox.limits_for(path.stat().st_size + facts.external_bytes)
    cpu_seconds = limits.cpu_seconds + _TRIAL_CPU_SECONDS
    return replace(
        limits,
        memory_bytes=limits.memory_bytes + _TRIAL_MEMORY_BYTES,
        cpu_seconds=cpu_seconds,
        wall_seconds=3 * cpu_seconds,
    )


def _estimate_memory(
    path: Path,
    facts: OnnxFacts,
    signature: Signature,
    declaration: Declaration,
    checklist: Checklist,
) -> UseExamination:
    step = "GPU memory"
    checklist.running(step, "computing peak tensor memory")
    problems = input_sizes.problems_with(signature, declaration.largest_inputs)
    declared_sizes = {n: d for n, d in declaration.largest_inputs.items() if n not in problems}
    sizes = input_sizes.largest(signature, declared_sizes)
    live, is_complete = _live_bytes(path, signature, sizes, checklist)
    estimate = onnx.estimate_vram(weights_bytes=facts.weights_bytes, live_bytes=live)
    if estimate.total_mib > _LARGEST_ESTIMATE_MIB:
        raise refuse_step(
            checklist,
            step,
            "The file declares tensors of more than 16 TiB, more than any GPU holds. Export "
            "the model with its real shapes.",
        )
    notes = [*problems.values(), *_notes(sizes, is_complete=is_complete)]
    checklist.pass_step(step, " ".join([_describe_estimate(estimate, sizes), *notes]))
    shown = replace(signature, facts={**signature.facts, "largest_inputs": sizes.text})
    return UseExamination(shown, estimate)


def _live_bytes(
    path: Path, signature: Signature, sizes: InputSizes, checklist: Checklist
) -> tuple[int, bool]:
    """Return the peak bytes, at least those of the inputs, and whether all shapes were inferred."""
    fed = _bytes_fed(signature, sizes.dims)
    outcome = sandbox.run(
        _ACTIVATIONS,
        {"path": str(path), "inputs": {name: list(dims) for name, dims in sizes.dims.items()}},
        limits=sandbox.limits_for(path.stat().st_size),
        while_running=checklist.keep_alive,
    )
    if isinstance(outcome, Finished):
        return max(fed, int(outcome.value["live"])), bool(outcome.value["is_complete"])
    logger.warning("cannot infer the tensor sizes of a version: %s", outcome)
    return fed, False


def _bytes_fed(signature: Signature, dims: Mapping[str, tuple[int, ...]]) -> int:
    return sum(
        replace(tensor, dims=dims[tensor.name]).bytes_per_item(is_batched=False)
        for tensor in signature.inputs
    )


def _describe_estimate(estimate: VramEstimate, sizes: InputSizes) -> str:
    low, high = estimate.total_mib - estimate.spread_mib, estimate.total_mib
    total = f"{low:,} to {high:,}" if low < high else f"about {high:,}"
    activations = (
        f"{estimate.activations_mib - estimate.spread_mib:,} to {estimate.activations_mib:,}"
    )
    return (
        f"{total} MiB: weights {estimate.weights_mib:,}, activations {activations} at {sizes.text}, "
        f"runtime {estimate.runtime_mib:,}."
    )


def _notes(sizes: InputSizes, *, is_complete: bool) -> list[str]:
    notes: list[Any] = []
    if sizes.assumed:
        names = ", ".join(sizes.assumed[:5])
        notes.append(f"Sizes of {names} are assumed; declare the largest inputs.")
    if not is_complete:
        notes.append("Some shapes are unknown, so actual usage may be higher.")
    return notes
