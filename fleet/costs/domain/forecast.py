"""Month-end forecast: one formula for the home page, the Costs page and every preflight."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from decimal import Decimal

from fleet.gpus.domain.money import CENT
from fleet.gpus.domain.rates import EndingRate

_MS_PER_HOUR = 3_600_000


def month_end_amount(
    *,
    spent_amount: Decimal,
    usd_per_hour_amount: Decimal | None,
    at: datetime,
    ending: Iterable[EndingRate] = (),
) -> Decimal | None:
    """Return the amount spent so far plus the current hourly rate until the end of the month of `at` (UTC). Of the
    rate, `ending` is the part that ends by itself, which counts until then.

    None if the hourly rate is unknown.
    """
    if usd_per_hour_amount is None:
        return None
    amount = spent_amount + usd_per_hour_amount * _hours_left(at)
    for rate in ending:
        hours = _hours_left(at) - hours_until(rate.ends_at, at)
        amount -= rate.usd_per_hour_amount * hours
    return amount.quantize(CENT)


def hours_until(end: datetime, at: datetime) -> Decimal:
    """Return the hours from `at` to `end`, not before `at` and not after its month."""
    return count_hours_in_month(at, seconds=max(0, int((end - at).total_seconds())))


def count_hours_in_month(at: datetime, *, seconds: int) -> Decimal:
    """Return the hours of `seconds` from `at` on, up to the end of the month."""
    return min(Decimal(seconds) / 3600, _hours_left(at))


def _hours_left(at: datetime) -> Decimal:
    first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    next_month = first.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)
    milliseconds = int((next_month - at).total_seconds() * 1000)
    return Decimal(milliseconds) / _MS_PER_HOUR
