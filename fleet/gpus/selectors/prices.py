"""List prices of instance types. Without a row, the price is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from fleet.models import InstancePrice


@dataclass(frozen=True, slots=True)
class Price:
    instance_type: str
    region: str
    capacity_type: str
    usd_per_hour_amount: Decimal
    gpu_name: str
    gpu_count: int
    gpu_memory_mib: int
    is_mig_capable: bool
    vcpu: int
    memory_gib: int
    allocatable_cpu: str
    allocatable_memory: str
    source: str
    valid_from: date


@dataclass(frozen=True, slots=True)
class PriceKey:
    instance_type: str
    region: str
    capacity_type: str


class PriceBook:
    """Prices of some instance types, read once."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._by_key: dict[PriceKey, list[Price]] = {}
        for price in sorted(prices, key=lambda price: price.valid_from):
            key = PriceKey(price.instance_type, price.region, price.capacity_type)
            self._by_key.setdefault(key, []).append(price)

    def has(self, key: PriceKey) -> bool:
        return key in self._by_key

    def on(self, key: PriceKey, day: date) -> Price | None:
        """The price valid on that day. The first known one also counts for earlier days: a catalogue's
        date is the day it was read.
        """
        known = self._by_key.get(key, [])
        return next((price for price in reversed(known) if price.valid_from <= day), None) or next(
            iter(known), None
        )


def price_of(*, instance_type: str, region: str, capacity_type: str, on: date) -> Price | None:
    return book([instance_type]).on(PriceKey(instance_type, region, capacity_type), on)


def facts_of(instance_type: str) -> Price | None:
    """The newest row of the type in any region, for its hardware; None for an unknown type."""
    row = InstancePrice.objects.filter(instance_type=instance_type).order_by("-valid_from").first()
    return _price(row) if row else None


def book(instance_types: Collection[str]) -> PriceBook:
    rows = InstancePrice.objects.filter(instance_type__in=instance_types)
    return PriceBook(_price(row) for row in rows)


def list_prices(*, on: date) -> list[Price]:
    """The prices of a day: one for each instance type, region and capacity type."""
    rows = [_price(row) for row in InstancePrice.objects.all()]
    book = PriceBook(rows)
    keys = {PriceKey(row.instance_type, row.region, row.capacity_type) for row in rows}
    prices = [price for key in keys if (price := book.on(key, on))]
    return sorted(prices, key=lambda price: (price.region, price.gpu_name, price.vcpu))


def _price(row: InstancePrice) -> Price:
    return Price(
        instance_type=row.instance_type,
        region=row.region,
        capacity_type=row.capacity_type,
        usd_per_hour_amount=row.usd_per_hour_amount,
        gpu_name=row.gpu_name,
        gpu_count=row.gpu_count,
        gpu_memory_mib=row.gpu_memory_mib,
        is_mig_capable=row.is_mig_capable,
        vcpu=row.vcpu,
        memory_gib=row.memory_gib,
        allocatable_cpu=row.allocatable_cpu,
        allocatable_memory=row.allocatable_memory,
        source=row.source,
        valid_from=row.valid_from,
    )
