from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from fleet.costs.domain.forecast import month_end_amount
from fleet.gpus.domain.rates import EndingRate


@pytest.mark.parametrize(
    ("at", "hours_left"),
    [
        (datetime(2026, 11, 21, 12, tzinfo=UTC), 228),
        (datetime(2026, 12, 31, 23, 30, tzinfo=UTC), Decimal("0.5")),
        (datetime(2028, 2, 1, tzinfo=UTC), 696),
    ],
)
def test_what_is_held_is_held_to_the_end_of_the_month(
    at: datetime, hours_left: Decimal | int
) -> None:
    spent = Decimal("100.00")

    forecast = month_end_amount(spent_amount=spent, usd_per_hour_amount=Decimal(2), at=at)

    assert forecast == spent + 2 * hours_left


def test_an_unknown_price_makes_an_unknown_forecast() -> None:
    at = datetime(2026, 11, 21, tzinfo=UTC)

    assert month_end_amount(spent_amount=Decimal(1), usd_per_hour_amount=None, at=at) is None


@pytest.mark.parametrize(
    ("ends_in_hours", "hours"), [(5, 5), (-1, 0), (0, 0), (227, 227), (1000, 228)]
)
def test_what_ends_by_itself_counts_until_then_and_not_beyond_the_month(
    ends_in_hours: int, hours: int
) -> None:
    at = datetime(2026, 11, 21, 12, tzinfo=UTC)
    ending = [EndingRate(at + timedelta(hours=ends_in_hours), Decimal(3))]

    forecast = month_end_amount(
        spent_amount=Decimal(100), usd_per_hour_amount=Decimal(5), at=at, ending=ending
    )

    # $2 of the $5 an hour until the end of the month.
    assert forecast == 100 + 2 * 228 + 3 * hours
