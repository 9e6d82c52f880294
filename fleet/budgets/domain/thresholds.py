"""When a team's month has come to a part of its budget, or will exceed it at the current rate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final

from portal.core.definitions.figures import format_money


class Threshold(StrEnum):
    FORECAST = "forecast"
    HALF = "50%"
    MOST = "80%"
    ALL = "100%"


_PARTS: Final = ((Threshold.HALF, 50), (Threshold.MOST, 80), (Threshold.ALL, 100))


@dataclass(frozen=True, slots=True)
class CrossedThreshold:
    """A threshold that a team's month crossed. `month` is its first day, `at` when the team was notified."""

    threshold: Threshold
    month: date
    at: datetime


@dataclass(frozen=True, slots=True)
class MonthSoFar:
    """A team's month so far, in dollars. `forecast_amount` is None if a price is missing now. `has_unpriced_hours`
    is true if one was missing in hours of the month, which count as $0.
    """

    spent_amount: Decimal
    forecast_amount: Decimal | None
    budget_amount: Decimal
    has_unpriced_hours: bool = False


def list_crossed(month: MonthSoFar) -> list[Threshold]:
    """Return the crossed thresholds, least urgent first. Empty for a team without a budget."""
    budget = month.budget_amount
    if budget <= 0:
        return []
    parts = [name for name, percent in _PARTS if month.spent_amount * 100 >= budget * percent]
    is_exceeded = month.forecast_amount is not None and month.forecast_amount > budget
    return [Threshold.FORECAST, *parts] if is_exceeded else parts


def describe(threshold: Threshold, month: MonthSoFar) -> str:
    spent = f"{format_money(month.spent_amount)} of {format_money(month.budget_amount)} is spent this month"
    if month.has_unpriced_hours:
        spent += ", without hours that have no price yet"
    if month.forecast_amount is None:
        rest = "a price is missing, so the month's total is not known"
    else:
        rest = f"at the current rate the month will cost {format_money(month.forecast_amount)}"
    if threshold == Threshold.FORECAST:
        return f"{rest[0].upper()}{rest[1:]}; {spent}."
    return f"{spent}; {rest}."
