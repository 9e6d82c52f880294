"""Decide whether Triton batches requests to a model, from a trial and the uploader's declaration."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class BatchingVerdict(StrEnum):
    """The result of a batching trial of the first dimension."""

    SHOWN = "shown"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    # The first dimensions are not all dynamic, or have different names: no trial is possible.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BatchingDecision:
    """The decision about batching. `max_batch_size` 0 means no batching. `reason` explains it, with the fix."""

    max_batch_size: int
    reason: str


def decide(
    verdict: BatchingVerdict, reason: str, *, is_declared: bool | None, largest: int
) -> BatchingDecision:
    """Decide the batching. A trial result takes precedence; the declaration decides only if there is none."""
    if verdict is BatchingVerdict.NONE:
        return BatchingDecision(
            0, "off: the inputs and outputs do not share a dynamic batch dimension."
        )
    if verdict is BatchingVerdict.DIFFERS:
        return BatchingDecision(0, f"off: {reason} Batched requests would return wrong results.")
    if is_declared is False:
        return BatchingDecision(0, "off, as declared.")
    if verdict is BatchingVerdict.SHOWN:
        message = f"up to {largest}: an item gives the same result alone and in a batch."
        return BatchingDecision(largest, message)
    if is_declared:
        message = f"up to {largest}, as declared; not verified. {reason}"
        return BatchingDecision(largest, message)
    fix = "If the model supports batching, declare it."
    return BatchingDecision(0, f"off: batching support could not be verified. {reason} {fix}")
