"""Readings over time: slots of equal length, the gaps between them, and the labels of a time axis. Times are UTC."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_TICKS: Final = 6
_MONTH: Final = timedelta(days=28)
_TICK_STEPS: Final = (
    *(("minutes", count, timedelta(minutes=count)) for count in (1, 2, 5, 10, 15, 30)),
    *(("hours", count, timedelta(hours=count)) for count in (1, 2, 3, 6, 12)),
    *(("day", count, timedelta(days=count)) for count in (1, 2, 7, 14)),
)

# The times and values of a line, oldest first; None is not known.
TimedValues = Sequence[tuple[datetime, float | None]]


@dataclass(frozen=True, slots=True)
class Gap:
    """An interval without values, [start, end), and why."""

    start: datetime
    end: datetime
    reason: str


def floor_to(at: datetime, step: timedelta) -> datetime:
    """Return the start of the slot that contains the time. Slots are counted from 1970."""
    return _EPOCH + (at - _EPOCH) // step * step


def list_slots(start: datetime, end: datetime, step: timedelta) -> Iterator[datetime]:
    """Yield the starts of the slots from `start` on that begin before `end`."""
    at = start
    while at < end:
        yield at
        at += step


def find_gaps(
    known: Collection[datetime],
    *,
    start: datetime,
    end: datetime,
    step: timedelta,
    find_reason: Callable[[datetime], str],
) -> list[Gap]:
    """Return the slots of [start, end) that are not in `known`; neighbours of one reason are one gap. The last gap
    ends at `end`, also within a slot.
    """
    gaps: list[Gap] = []
    for at in list_slots(start, end, step):
        if at in known:
            continue
        until, reason = min(at + step, end), find_reason(at)
        if gaps and gaps[-1].end == at and gaps[-1].reason == reason:
            gaps[-1] = Gap(gaps[-1].start, until, reason)
        else:
            gaps.append(Gap(at, until, reason))
    return gaps


def break_line(values: TimedValues, step: timedelta) -> list[tuple[datetime, float | None]]:
    """Put None into each interval that is longer than a slot, so that no line is drawn through it."""
    result: list[tuple[datetime, float | None]] = []
    for at, value in values:
        if result and at - result[-1][0] > step:
            result.append((result[-1][0] + step, None))
        result.append((at, value))
    return result


def find_lone(values: TimedValues) -> list[datetime]:
    """Return the times of the values without a known neighbour: no line shows them."""
    padded = [None, *(value for _, value in values), None]
    return [
        at
        for place, (at, value) in enumerate(values)
        if value is not None and padded[place] is None and padded[place + 2] is None
    ]


def choose_tick_step(span: timedelta) -> tuple[str, int]:
    """Return the step between labels of an axis, as a unit of Vega and how many of it: the shortest of which fewer than six
    fit into the span.
    """
    for unit, count, step in _TICK_STEPS:
        if span < _MOST_TICKS * step:
            return unit, count
    return "month", max(1, -(-span // (_MOST_TICKS * _MONTH)))
