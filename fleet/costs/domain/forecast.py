"""Month-end forecast: one formula for the home page, the Costs page and every preflight."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

_CENT = Decimal("0.01")
_MS_PER_HOUR = 3_600_000


def month_end_amount(
    *, spent_amount: Decimal, usd_per_hour_amount: Decimal | None, at: datetime
) -> Decimal | None:
    """The amount spent so far plus the current hourly rate until the end of the month of `at` (UTC).

    None when the hourly rate is not known.
    """
    if usd_per_hour_amount is None:
        return None
    return (spent_amount + usd_per_hour_amount * _hours_left(at)).quantize(_CENT)


def hours_in_month_of(at: datetime, *, seconds: int) -> Decimal:
    """The hours of `seconds` from `at` on, up to the end of the month."""
    return min(Decimal(seconds) / 3600, _hours_left(at))


def _hours_left(at: datetime) -> Decimal:
    first = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    next_month = first.replace(year=at.year + at.month // 12, month=at.month % 12 + 1)
    milliseconds = int((next_month - at).total_seconds() * 1000)
    return Decimal(milliseconds) / _MS_PER_HOUR
