"""Which months, days and four hours a period is made of, so that it is read from their sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TypeVar

from fleet.gpus.domain.intervals import HOUR

_DAY = timedelta(days=1)
FOUR_HOURS = timedelta(hours=4)
At = TypeVar("At", bound=date)
Days = tuple[date, date]


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days [first, last), and the spans of hours beside them."""

    days: Days | None
    hours: Sequence[tuple[datetime, datetime]]


@dataclass(frozen=True, slots=True)
class Cover:
    """Whole months, named by their first days, and days beside them; days of the months that are not in the
    period are taken off again.
    """

    months: Days | None
    days: Sequence[Days]
    taken_off: Sequence[Days] = ()


def cut(start: datetime, end: datetime, *, now: datetime) -> Period:
    """Cut a period into whole days and the spans of hours beside them. The last day counts as whole if the period
    lasts until now: an hour that starts later has not ended, so it is not sealed.
    """
    first, last = _ceil(start), (_ceil(end) if end > now - HOUR else _floor(end))
    if first >= last:
        return Period(None, [(start, end)])
    spans = [(start, first), (last, end)]
    return Period((first.date(), last.date()), [(a, b) for a, b in spans if a < b])


def four_hours_in(
    start: datetime, end: datetime, *, now: datetime
) -> tuple[datetime, datetime] | None:
    """Return the start of the first whole four hours in [start, end), and the end of the last; None without any.
    Those that last until now are whole, as the last day is.
    """
    first = start + (_floor(start) - start) % FOUR_HOURS
    rest = (end - _floor(end)) % FOUR_HOURS
    last = end - rest + (FOUR_HOURS if rest and end > now - HOUR else timedelta(0))
    return (first, last) if first < last else None


def cover(days: Days, *, today: date, may_take_off: bool) -> Cover:
    """Cover days by whole months. A month that lasts until today or later is whole from its first day on: no later
    hour of it is sealed.

    With `may_take_off`, a month of which fewer days are outside than inside is read, and those are taken off.
    """
    first, last = days
    begin = first if first.day == 1 else _next_month(first)
    end = last.replace(day=1)
    if end < last and last > today:
        end = _next_month(end)
    taken_off: list[Days] = []
    if may_take_off and first < begin <= last and first.day - 1 < (begin - first).days:
        begin = first.replace(day=1)
        taken_off.append((begin, first))
    if may_take_off and begin <= end < last and (_next_month(end) - last) < (last - end):
        taken_off.append((last, _next_month(end)))
        end = _next_month(end)
    if begin >= end:
        return Cover(None, [days])
    return Cover((begin, end), beside(days, (begin, end)), taken_off)


def beside(span: tuple[At, At], whole: tuple[At, At] | None) -> list[tuple[At, At]]:
    """Return the rest of a span outside `whole`: the days beside its months, the hours beside its four-hour blocks."""
    if not whole:
        return [span]
    return [(a, b) for a, b in ((span[0], whole[0]), (whole[1], span[1])) if a < b]


def _floor(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _ceil(at: datetime) -> datetime:
    floor = _floor(at)
    return floor if floor == at else floor + _DAY


def _next_month(day: date) -> date:
    return (day.replace(day=1) + timedelta(days=32)).replace(day=1)
