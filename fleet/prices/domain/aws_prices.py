"""Read what AWS answers about prices.

The price list's products are JSON texts: product.attributes, and terms.OnDemand with price dimensions
(AWS Price List Query API, GetProducts, format version aws_v1). The spot history has changes of a
price in a zone, each valid until the next (Amazon EC2 API, DescribeSpotPriceHistory).
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final

_MICRO: Final = Decimal("0.000001")


class UnreadableAnswer(Exception):
    """The message says what is wrong with an answer of AWS."""


@dataclass(frozen=True, slots=True)
class SpotChange:
    """The spot price of a zone from `at` on."""

    zone: str
    at: datetime
    usd_per_hour_amount: Decimal


def on_demand_price(products: Iterable[str]) -> Decimal | None:
    """Return the dollars per hour of an instance type. None if AWS does not sell it on demand.

    Raises UnreadableAnswer, also for several prices: then a filter was not specific enough.
    """
    amounts: set[Decimal] = set()
    for product in products:
        try:
            terms = json.loads(product)["terms"].get("OnDemand", {})
            for term in terms.values():
                amounts.update(_hourly(term["priceDimensions"].values()))
        except (ValueError, KeyError, AttributeError, TypeError, InvalidOperation) as error:
            raise UnreadableAnswer("a product of the AWS price list cannot be read") from error
    if len(amounts) > 1:
        listed = ", ".join(f"${amount}" for amount in sorted(amounts))
        raise UnreadableAnswer(f"the AWS price list has several prices: {listed}")
    return amounts.pop() if amounts else None


def _hourly(dimensions: Iterable[Any]) -> Iterable[Decimal]:
    """Products that are free, such as reservations already paid for, are listed with 0."""
    for dimension in dimensions:
        if dimension["unit"] != "Hrs":
            continue
        amount = Decimal(dimension["pricePerUnit"]["USD"])
        if amount.is_finite() and amount > 0:
            yield amount.quantize(_MICRO)


def mean_spot_price(
    changes: Sequence[SpotChange], *, start: datetime, end: datetime
) -> Decimal | None:
    """Return the mean over [start, end), weighted by time, of the zones' prices. None without a price.

    A price is known from its change on, so a zone counts from its first one; one before `start` holds until the
    next.
    """
    by_zone: dict[str, list[SpotChange]] = defaultdict(list)
    for change in sorted(changes, key=lambda change: change.at):
        by_zone[change.zone].append(change)
    weighted, seconds = Decimal(0), Decimal(0)
    for of_zone in by_zone.values():
        ends = [*(change.at for change in of_zone[1:]), end]
        for change, until in zip(of_zone, ends, strict=True):
            lasted = (min(until, end) - max(change.at, start)).total_seconds()
            if lasted > 0:
                weighted += change.usd_per_hour_amount * Decimal(lasted)
                seconds += Decimal(lasted)
    return (weighted / seconds).quantize(_MICRO) if seconds else None
