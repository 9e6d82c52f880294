"""The catalogue's page: today's prices, those of the fleet's own nodes first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

from django.db.models import Count

from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price, PriceKey
from fleet.models import InstancePrice, Node

FLEET_FIRST: Final = "fleet"


@dataclass(frozen=True, slots=True)
class PriceFilter:
    """A filter of the price list. Empty fields do not filter; every word of `search` must be in the type, the GPU
    or the source.
    """

    search: str = ""
    region: str = ""
    capacity_type: str = ""


@dataclass(frozen=True, slots=True)
class ListedPrice:
    """A price in the list. `nodes` is the number of present nodes that cost this price."""

    price: Price
    nodes: int
    is_type_of_fleet: bool


def list_prices(
    *, on: date, price_filter: PriceFilter, order: str = FLEET_FIRST
) -> list[ListedPrice]:
    """List the prices of a day that match. `order` is a key of SORTS, reversed by a leading minus."""
    kinds = Node.objects.filter(gone_at=None, gpu_count__gt=0).values_list(
        "instance_type", "region", "cluster__region", "capacity_type"
    )
    nodes: Counter[PriceKey] = Counter()
    for instance_type, region, of_cluster, kind, count in kinds.annotate(Count("pk")).order_by():
        nodes[PriceKey(instance_type, region or of_cluster, kind)] += count
    types = {key.instance_type for key in nodes}
    rows = [
        ListedPrice(price, nodes[price.key], price.instance_type in types)
        for price in prices.list_prices(on=on)
        if _matches(price, price_filter)
    ]
    return sorted(rows, key=SORTS[order.removeprefix("-")], reverse=order.startswith("-"))


def list_regions() -> list[str]:
    regions = InstancePrice.objects.order_by("region").values_list("region", flat=True)
    return list(regions.distinct())


def _matches(price: Price, price_filter: PriceFilter) -> bool:
    text = f"{price.instance_type} {price.gpu_name} {price.source}".casefold()
    return (
        price_filter.region in ("", price.region)
        and price_filter.capacity_type in ("", price.capacity_type)
        and all(word in text for word in price_filter.search.casefold().split())
    )


def _fleet_first(row: ListedPrice) -> tuple[Any, ...]:
    """Return the sort key: prices that nodes cost, then other prices of their types, then the rest by GPU and size."""
    price = row.price
    return (
        not row.nodes,
        not row.is_type_of_fleet,
        price.gpu_name.casefold(),
        price.gpu_count,
        price.vcpu,
        price.instance_type,
        price.region,
        price.capacity_type,
    )


SORTS: Final[Mapping[str, Callable[[ListedPrice], tuple[Any, ...]]]] = {
    FLEET_FIRST: _fleet_first,
    "type": lambda row: (row.price.instance_type, row.price.region, row.price.capacity_type),
    "price": lambda row: (row.price.usd_per_hour_amount, row.price.instance_type, row.price.region),
}
