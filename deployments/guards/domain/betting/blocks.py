"""The length of a block of the slow lane: long enough that blocks do not remember each other.

A block is one trial of the slow lane (`lanes`). Its length is chosen before a step from what the
stable revision did in the hour before, so that it cannot depend on the candidate:

- one reading (CALM) where the hour shows neither overdispersion nor memory, at 5 s and at 30 s, and for
  failures no minute of the last two to six hours was a burst (`bursts`): bursts that come three times an
  hour miss one hour in twenty;
- else the shortest of LENGTHS whose blocks have a lag-1 autocorrelation below 2 / sqrt(blocks), and below
  MOST_LAG where few blocks show little;
- with too little history DEFAULT_SECONDS, and the evidence says so. They are chosen anew in a step, when
  the history has grown to one of HISTORY_SECONDS: still from stable's past alone.

Overdispersion is Pearson's chi-square over its degrees of freedom, T - 1, of T counts of failures;
independent requests exceed 1 + 2.5 sqrt(2 / T) in fewer than 1% of hours. With two pods or more both
are computed from the difference of two halves of the pods: bursts that hit all pods hit the
candidate too, so they need no longer blocks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, Final

from deployments.guards.domain.betting import bursts
from deployments.guards.domain.betting.slots import SLOT_SECONDS, Series, Slot

LENGTHS: Final = (30, 60, 120, 300)
CALM: Final = 0.0
DEFAULT_SECONDS: Final = 60.0
# Fewer blocks show no autocorrelation.
_LEAST_BLOCKS: Final = 12
MOST_LAG: Final = 0.25
# With each of them the estimates are so much better that a choice made with less is made anew.
HISTORY_SECONDS: Final = (360.0, 720.0, 1440.0, 3600.0)
# Below that neither overdispersion nor memory can be seen in failures.
_LEAST_FAILURES: Final = 50
_CALM_ERRORS_SECONDS: Final = 1800
_CALM_SCALES: Final = (5, 30)
# How often Prometheus is asked for histograms.
READING_SECONDS: Final = 10.0
# Two scrapes: the counts of both sides are read up to one scrape apart.
_LEAST_OF_HISTOGRAM: Final = 30.0
# One series for each pod of stable, all of the same slots.
History = Sequence[Series]


@dataclass(frozen=True, slots=True)
class BlockLengths:
    """The seconds of a block of failures and of means; CALM is one reading.

    `spread` is the standard deviation of the logarithm of stable's block means, None if the history does not show
    it.
    """

    errors: float = DEFAULT_SECONDS
    means: float = DEFAULT_SECONDS
    spread: float | None = None
    is_from_history: bool = False
    # What was known when they were chosen, and how much of the step had passed.
    history_seconds: float = 0.0
    step_seconds: float = 0.0

    def is_outdated(self, step_seconds: float) -> bool:
        """Whether there is now enough more history to choose better."""
        now = self.history_seconds + step_seconds - self.step_seconds
        return any(self.history_seconds < length <= now for length in HISTORY_SECONDS)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def describe(self, seconds: float) -> str:
        """Describe the block length for the tooltip of a verdict."""
        if not self.is_from_history:
            return f"blocks of {seconds:g} s, for lack of history"
        return "one block for each reading" if seconds == CALM else f"blocks of {seconds:g} s"


def from_json(stored: Mapping[str, Any] | None) -> BlockLengths:
    return BlockLengths(**(stored or {}))


def choose(history: History, minutes: Series = (), *, step_seconds: float = 0.0) -> BlockLengths:
    """Choose the block lengths of a step from stable's last hour, as far as it was read, and from what all of its
    pods did in each of the last minutes.
    """
    halves = _halves(history)
    seconds = float(len(halves[0]) * SLOT_SECONDS if halves else 0)
    if seconds < _LEAST_BLOCKS * LENGTHS[0]:
        return BlockLengths(history_seconds=seconds, step_seconds=step_seconds)
    is_calm = _are_errors_calm(halves) and (len(halves) > 1 or bursts.has_none(minutes))
    means = CALM if _are_means_calm(halves) else _length(halves, _log_mean)
    return BlockLengths(
        errors=CALM if is_calm else _length(halves, _error_rate),
        means=means,
        spread=_spread(halves, max(means, SLOT_SECONDS)),
        is_from_history=True,
        history_seconds=seconds,
        step_seconds=step_seconds,
    )


def lengthen_for_histogram(seconds: float) -> float:
    """Return the length of a histogram's block in seconds, given the length of a block of means."""
    return CALM if seconds == CALM else max(_LEAST_OF_HISTOGRAM, seconds)


def _halves(history: History) -> list[list[Slot]]:
    """Return one series, or with two pods or more those of two halves of the pods."""
    busy = [series for series in history if any(slot.requests for slot in series)]
    halves = [_sum(group) for group in (busy[::2], busy[1::2]) if group]
    if len(halves) < 2:
        return halves
    both = [one.requests and other.requests for one, other in zip(*halves, strict=True)]
    # Pods that replaced each other cannot be compared.
    return halves if 2 * sum(map(bool, both)) > len(both) else [_sum(busy)]


def _sum(group: Sequence[Series]) -> list[Slot]:
    return [sum(slots, Slot()) for slots in zip(*group, strict=True)]


def _blocks(halves: Sequence[Series], seconds: float) -> list[tuple[Slot, ...]]:
    """Return the halves of each whole block."""
    size = max(1, round(seconds / SLOT_SECONDS))
    starts = range(0, len(halves[0]) - size + 1, size)
    return [tuple(sum(half[at : at + size], Slot()) for half in halves) for at in starts]


Figure = Callable[[Slot], float | None]


def _error_rate(slot: Slot) -> float | None:
    return slot.error_rate


def _log_mean(slot: Slot) -> float | None:
    return slot.log_mean


def _values(halves: Sequence[Series], seconds: float, figure: Figure) -> list[float]:
    """Return the figure of each block, or the difference of the halves. Blocks without it are left out."""
    values = []
    for block in _blocks(halves, seconds):
        figures = [figure(slot) for slot in block]
        if all(value is not None for value in figures):
            first, *others = [value for value in figures if value is not None]
            values.append(first - sum(others))
    return values


def _length(halves: Sequence[Series], figure: Figure) -> float:
    for seconds in LENGTHS:
        values = _values(halves, seconds, figure)
        if len(values) >= _LEAST_BLOCKS and lag_1(values) < most_lag(len(values)):
            return float(seconds)
    return float(LENGTHS[-1])


def _are_errors_calm(halves: Sequence[Series]) -> bool:
    failures = sum(slot.failures for half in halves for slot in half)
    if failures < _LEAST_FAILURES or len(halves[0]) * SLOT_SECONDS < _CALM_ERRORS_SECONDS:
        return False
    return all(
        not _has_memory(halves, seconds, _error_rate)
        and not _is_overdispersed(_blocks(halves, seconds))
        for seconds in _CALM_SCALES
    )


def _are_means_calm(halves: Sequence[Series]) -> bool:
    """Whether means show no memory. The test of means is a test of signs, so how far apart they lie does not matter."""
    return all(not _has_memory(halves, seconds, _log_mean) for seconds in _CALM_SCALES)


def _has_memory(halves: Sequence[Series], seconds: float, figure: Figure) -> bool:
    """Whether blocks of this length remember each other. True also if too few blocks have the figure to tell."""
    values = _values(halves, seconds, figure)
    return len(values) < _LEAST_BLOCKS or lag_1(values) >= most_lag(len(values))


def most_lag(count: int) -> float:
    """Return the lag-1 autocorrelation below which independent values stay in 97 of 100 cases; of a dozen values in
    three of four.
    """
    return min(MOST_LAG, 2 / math.sqrt(count))


def lag_1(values: Sequence[float]) -> float:
    mean = sum(values) / len(values)
    total = sum((value - mean) ** 2 for value in values)
    product = sum((a - mean) * (b - mean) for a, b in pairwise(values))
    return product / total if total else 0.0


def _is_overdispersed(blocks: Sequence[tuple[Slot, ...]]) -> bool:
    terms = _of_one(blocks) if len(blocks[0]) == 1 else _of_two(blocks)
    if len(terms) < _LEAST_BLOCKS:
        return True
    return sum(terms) / (len(terms) - 1) >= 1 + 2.5 * math.sqrt(2 / len(terms))


def _of_one(blocks: Sequence[tuple[Slot, ...]]) -> list[float]:
    """Return the terms of Pearson's chi-square of counts around one common rate."""
    slots = [block[0] for block in blocks if block[0].requests]
    rate = sum(slot.failures for slot in slots) / max(1, sum(slot.requests for slot in slots))
    scale = rate * (1 - rate)
    return [(s.failures - rate * s.requests) ** 2 / (s.requests * scale) for s in slots if scale]


def _of_two(blocks: Sequence[tuple[Slot, ...]]) -> list[float]:
    """Return the terms for how the failures of a block fell on two halves, whatever their common rate."""
    terms = []
    for one, other in blocks:
        failures, requests = one.failures + other.failures, one.requests + other.requests
        part = one.requests / requests if requests else 0.0
        if failures and 0 < part < 1:
            expected = failures * part
            terms.append((one.failures - expected) ** 2 / (expected * (1 - part)))
    return terms


def _spread(halves: Sequence[Series], seconds: float) -> float | None:
    values = _values(halves, seconds, _log_mean)
    if len(values) < _LEAST_BLOCKS:
        return None
    # Of neighbours, so that slow changes, which both sides share, do not count.
    steps = [(b - a) ** 2 / 2 for a, b in pairwise(values)]
    return math.sqrt(sum(steps) / len(steps))
