"""Which months, days and four hours of a period are read from their sums."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fleet.costs.domain.periods import Days, cover, four_hours_in

_TODAY = date(2026, 11, 23)
_NOW = datetime(2026, 11, 27, 9, 40, tzinfo=UTC)


def day(month: int, number: int) -> date:
    return date(2026, month, number)


def at(hour: float, day: int = 27) -> datetime:
    return datetime(2026, 11, day, tzinfo=UTC) + timedelta(hours=hour)


@pytest.mark.parametrize(
    ("first", "last", "months"),
    [
        # This month until now: the day after today is the end of its days.
        (date(2026, 11, 1), date(2026, 11, 24), (date(2026, 11, 1), date(2026, 12, 1))),
        (date(2026, 11, 1), date(2026, 11, 23), None),
        (date(2026, 11, 2), date(2026, 11, 24), None),
        (date(2026, 10, 1), date(2026, 11, 1), (date(2026, 10, 1), date(2026, 11, 1))),
        (date(2026, 10, 1), date(2026, 10, 31), None),
        (date(2026, 10, 24), date(2026, 11, 24), (date(2026, 11, 1), date(2026, 12, 1))),
        (date(2025, 12, 31), date(2026, 3, 2), (date(2026, 1, 1), date(2026, 3, 1))),
        (date(2026, 12, 1), date(2027, 1, 1), (date(2026, 12, 1), date(2027, 1, 1))),
    ],
)
def test_a_month_is_whole_from_its_first_day_to_its_last_or_to_today(
    first: date, last: date, months: tuple[date, date] | None
) -> None:
    assert cover((first, last), today=_TODAY, may_take_off=False).months == months


@pytest.mark.parametrize(
    ("days", "months", "beside", "taken_off"),
    [
        # The 26 days before this month.
        (
            (day(10, 6), day(11, 1)),
            (day(10, 1), day(11, 1)),
            [],
            [(day(10, 1), day(10, 6))],
        ),
        ((day(10, 20), day(11, 1)), None, [(day(10, 20), day(11, 1))], []),
        (
            (day(9, 29), day(10, 29)),
            (day(10, 1), day(11, 1)),
            [(day(9, 29), day(10, 1))],
            [(day(10, 29), day(11, 1))],
        ),
        # Of one month, neither of whose ends is one of its ends.
        ((day(10, 3), day(10, 30)), None, [(day(10, 3), day(10, 30))], []),
        (
            (day(9, 2), day(11, 22)),
            (day(9, 1), day(12, 1)),
            [],
            [(day(9, 1), day(9, 2)), (day(11, 22), day(12, 1))],
        ),
    ],
)
def test_a_month_of_which_few_days_are_outside_is_read_and_they_are_taken_off(
    days: Days, months: Days | None, beside: list[Days], taken_off: list[Days]
) -> None:
    found = cover(days, today=_TODAY, may_take_off=True)

    assert (found.months, list(found.days), list(found.taken_off)) == (months, beside, taken_off)


@given(
    start=st.dates(date(2026, 1, 1), date(2026, 12, 31)),
    length=st.integers(1, 120),
    may_take_off=st.booleans(),
)
def test_a_cover_has_each_day_once(start: date, length: int, may_take_off: bool) -> None:
    days = (start, start + timedelta(days=length))
    found = cover(days, today=date(2027, 12, 31), may_take_off=may_take_off)

    counted = dict.fromkeys(each(days[0] - timedelta(days=40), days[1] + timedelta(days=40)), 0)
    for spans, sign in (([found.months] if found.months else [], 1), (found.days, 1)):
        for span in spans:
            for one in each(*span):
                counted[one] += sign
    for span in found.taken_off:
        for one in each(*span):
            counted[one] -= 1
    assert {one for one, count in counted.items() if count} == set(each(*days))
    assert set(counted.values()) <= {0, 1}
    assert all(a.day == b.day == 1 for a, b in pairwise(found.months or ()))


def each(first: date, last: date) -> list[date]:
    return [first + timedelta(days=n) for n in range((last - first).days)]


@pytest.mark.parametrize(
    ("start", "end", "whole"),
    [
        (at(10, day=26), at(0), (at(12, day=26), at(0))),
        (at(12, day=26), at(0), (at(12, day=26), at(0))),
        (at(0), at(7), (at(0), at(4))),
        (at(1), at(7), None),
        (at(1), at(3), None),
        (at(20.5, day=26), at(0), None),
        (at(7.5), at(8.5), None),
        # Until now: later hours of the last four are not sealed.
        (at(1), at(10), (at(4), at(12))),
        (at(9), at(10), None),
        (at(8), at(10), (at(8), at(12))),
        (at(1), at(8.75), (at(4), at(12))),
        (at(1), at(8.5), (at(4), at(8))),
    ],
)
def test_four_hours_are_whole_at_their_ends_or_until_now(
    start: datetime, end: datetime, whole: tuple[datetime, datetime] | None
) -> None:
    assert four_hours_in(start, end, now=_NOW) == whole
