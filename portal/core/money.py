"""Amounts are Decimal US dollars. The parts of a total sum to the total exactly."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_FLOOR, Decimal

MICRO = Decimal("0.000001")


def split_exactly(
    total: Decimal, weights: Sequence[int], *, unit: Decimal = MICRO
) -> list[Decimal]:
    """Split `total` in proportion to `weights` in multiples of `unit`, by largest remainder.

    The parts sum to `total` exactly (any part of `total` below one unit goes to the largest part).
    Raises ValueError when the weights do not sum to more than zero.
    """
    whole = sum(weights)
    if whole <= 0 or min(weights) < 0:
        raise ValueError("weights must not be negative and must sum to more than zero")
    exact = [total * weight / whole for weight in weights]
    parts = [value.quantize(unit, rounding=ROUND_FLOOR) for value in exact]
    by_remainder = sorted(range(len(parts)), key=lambda i: (parts[i] - exact[i], i))
    missing = int((total - sum(parts)) / unit)
    for i in by_remainder[:missing]:
        parts[i] += unit
    parts[weights.index(max(weights))] += total - sum(parts)
    return parts
