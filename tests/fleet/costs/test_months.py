"""Which months of a period are read whole."""

from __future__ import annotations

from datetime import date

import pytest

from fleet.costs.selectors.sealed import months_in

_TODAY = date(2026, 11, 23)


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
    assert months_in((first, last), today=_TODAY) == months
