"""Whether Triton may join requests to a model: what a trial showed, and what the uploader declares."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """What the trial of a model says of its first dimension."""

    SHOWN = "shown"
    DIFFERS = "differs"
    UNKNOWN = "unknown"
    # The first dimensions are not all free, or not of one name: there is nothing to try.
    NONE = "none"


@dataclass(frozen=True, slots=True)
class BatchingDecision:
    """`max_batch_size` 0 is no batching. `words` say why, and what to do about it."""

    max_batch_size: int
    words: str


def decide(
    verdict: Verdict, reason: str, *, is_declared: bool | None, largest: int
) -> BatchingDecision:
    """A declaration decides only where nothing was shown; it never overrules what was."""
    if verdict is Verdict.NONE:
        return BatchingDecision(
            0, "off: the inputs and outputs do not share a dynamic batch dimension."
        )
    if verdict is Verdict.DIFFERS:
        return BatchingDecision(0, f"off: {reason} Batched requests would return wrong results.")
    if is_declared is False:
        return BatchingDecision(0, "off, as declared.")
    if verdict is Verdict.SHOWN:
        words = f"up to {largest}: an item gives the same result alone and in a batch."
        return BatchingDecision(largest, words)
    if is_declared:
        words = f"up to {largest}, as declared; not verified. {reason}"
        return BatchingDecision(largest, words)
    fix = "If the model supports batching, declare it."
    return BatchingDecision(0, f"off: batching support could not be verified. {reason} {fix}")
