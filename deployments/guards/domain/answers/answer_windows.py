"""The same windows of time of both sides of a model-quality guard.

With 5% of the requests a candidate needs hours for what stable posts in minutes, and answers change
with the time of day. So only windows in which both sides posted count, and of each side all of them
up to the same end. A window counts once it is over, so that what an interim look saw stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from deployments.guards.domain.answers import two_sample_tests
from deployments.guards.domain.answers.answer_metrics import Summary

WINDOW_SECONDS: Final = 300
# Of one side in one window: the first ones stand for the others.
_MOST_ROWS: Final = 40
_MOST_WINDOWS: Final = 100


@dataclass(frozen=True, slots=True)
class AnswerBatch:
    """A posted batch: the key of its row, when it was posted, and from which side."""

    key: int
    at: datetime
    is_candidate: bool


def window_of(at: datetime) -> int:
    return int(at.timestamp() // WINDOW_SECONDS)


def windows(rows: Iterable[AnswerBatch], *, now: datetime) -> list[tuple[list[int], list[int]]]:
    """Return the keys of stable's and the candidate's rows in each window that is over, the oldest first."""
    by_window: dict[int, tuple[list[int], list[int]]] = {}
    for row in rows:
        sides = by_window.setdefault(window_of(row.at), ([], []))
        side = sides[row.is_candidate]
        if len(side) < _MOST_ROWS:
            side.append(row.key)
    present = window_of(now)
    return [sides for window, sides in sorted(by_window.items()) if window < present]


def common(rows: Iterable[AnswerBatch], *, now: datetime) -> list[tuple[list[int], list[int]]]:
    """Return the windows that both sides have."""
    return [sides for sides in windows(rows, now=now) if all(sides)][:_MOST_WINDOWS]


def merge(rows: Sequence[Summary]) -> Summary:
    totals = [row.total for row in rows if row.total]
    total = tuple(map(sum, zip(*totals, strict=True))) if totals else ()
    counts: Mapping[str, int] = two_sample_tests.add([row.counts for row in rows])
    return Summary(sum(row.n for row in rows), counts, total)


def up_to(
    stable: Sequence[Summary], candidate: Sequence[Summary], size: int
) -> tuple[Summary, Summary]:
    """Return both sides over the first windows in which each has at least `size` values."""
    taken = 0
    sums = [0, 0]
    longest = max(len(stable), len(candidate))
    while taken < longest and min(sums) < size:
        for index, side in enumerate((stable, candidate)):
            sums[index] += side[taken].n if taken < len(side) else 0
        taken += 1
    return merge(stable[:taken]), merge(candidate[:taken])
