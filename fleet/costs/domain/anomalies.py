"""Detect days of unusual cost by comparing with medians, which one outlier hardly moves.

A day departs when it is further from the median of the 28 days before it, and from that of the same weekday
among them, than all of: $10, a fifth of that median, and three times the typical deviation of those days (their
median absolute deviation, scaled as a standard deviation). Weekends and office hours are therefore no anomalies.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from statistics import median
from typing import Final

DAYS: Final = 28
# Fewer days say too little.
FEWEST_DAYS: Final = 7
LEAST_AMOUNT: Final = Decimal(10)
LEAST_RATIO: Final = Decimal("0.2")
DEVIATIONS: Final = 3
# Of a normal distribution: standard deviation / median absolute deviation.
_SCALE: Final = Decimal("1.4826")
_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Anomaly:
    """A day whose cost is unusual. `usual_amount` is the nearer of the two medians."""

    day: date
    amount: Decimal
    usual_amount: Decimal

    @property
    def is_rise(self) -> bool:
        return self.amount > self.usual_amount


def judge(amounts: Mapping[date, Decimal], day: date) -> Anomaly | None:
    """Judge a day by the `amounts` of the days before it. From the first of them on, a day that is left out cost
    nothing. None if it is usual, or too few days are known.
    """
    first = min(amounts, default=day)
    before = [
        day - timedelta(days=n) for n in range(1, DAYS + 1) if day - timedelta(days=n) >= first
    ]
    if len(before) < FEWEST_DAYS:
        return None
    costs = [amounts.get(one, _ZERO) for one in before]
    same = [amounts.get(one, _ZERO) for one in before if one.weekday() == day.weekday()]
    amount, medians = amounts.get(day, _ZERO), [median(costs), median(same)]
    spread = _SCALE * median(abs(cost - medians[0]) for cost in costs)
    differences = [amount - usual for usual in medians]
    is_far = all(
        abs(difference) > max(LEAST_AMOUNT, LEAST_RATIO * usual, DEVIATIONS * spread)
        for difference, usual in zip(differences, medians, strict=True)
    )
    # Opposite signs: the amount lies between the two medians, so it is unlike neither kind of day.
    if not is_far or differences[0] * differences[1] < 0:
        return None
    return Anomaly(day, amount, min(medians, key=lambda usual: abs(amount - usual)))
