"""Prices of instance types. Without a row, the price is not known."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from django.db.models import Exists, OuterRef, Q, QuerySet

from fleet.gpus.domain import capacity_types
from fleet.models import InstancePrice, Node
from portal.core.money import MICRO


@dataclass(frozen=True, slots=True)
class PriceKey:
    instance_type: str
    region: str
    capacity_type: str


@dataclass(frozen=True, slots=True)
class Price:
    """A price of an instance type. `origin` is who states it: the shipped catalogue, AWS or a person."""

    id: int
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
    origin: str
    valid_from: date

    @property
    def key(self) -> PriceKey:
        return PriceKey(self.instance_type, self.region, self.capacity_type)

    @property
    def usd_per_gpu_hour_amount(self) -> Decimal:
        return (self.usd_per_hour_amount / max(self.gpu_count, 1)).quantize(MICRO)

    def scale_to_gpus(self, count: int) -> Price:
        """Return the price of a node with `count` GPUs. Only own hardware is priced by GPU."""
        if self.capacity_type != capacity_types.OWN or self.gpu_count in (0, count):
            return self
        amount = (self.usd_per_hour_amount * count / self.gpu_count).quantize(MICRO)
        return replace(self, usd_per_hour_amount=amount, gpu_count=count)


def key_of(node: Node, capacity_type: str = "") -> PriceKey:
    """Return the price of the node, or of one like it with another capacity type. Reads its cluster."""
    region = node.region or node.cluster.region
    return PriceKey(node.instance_type, region, capacity_type or node.capacity_type)


class PriceBook:
    """The prices of some instance types, read once."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._by_key: dict[PriceKey, list[Price]] = {}
        for price in sorted(prices, key=lambda price: price.valid_from):
            self._by_key.setdefault(price.key, []).append(price)

    def has(self, key: PriceKey) -> bool:
        return key in self._by_key

    def on(self, key: PriceKey, day: date) -> Price | None:
        """Return the price valid on that day. The first known one also counts for earlier days: a catalogue's date
        is the day it was read.
        """
        known = self._by_key.get(key, [])
        return next((price for price in reversed(known) if price.valid_from <= day), None) or next(
            iter(known), None
        )

    def find_node_price(self, node: Node, day: date, *, capacity_type: str = "") -> Price | None:
        price = self.on(key_of(node, capacity_type), day)
        return price.scale_to_gpus(node.gpu_count) if price and node.gpu_count else price


def price_of(*, instance_type: str, region: str, capacity_type: str, on: date) -> Price | None:
    return book([instance_type]).on(PriceKey(instance_type, region, capacity_type), on)


def find_hardware(instance_type: str) -> Price | None:
    """Return the newest row of the type in any region, for its hardware. None for an unknown type."""
    row = InstancePrice.objects.filter(instance_type=instance_type).order_by("-valid_from").first()
    return _price(row) if row else None


def book(instance_types: Collection[str], *, on: date | None = None) -> PriceBook:
    """Return the whole history of the types, or, with a day, what is valid on that day."""
    rows = InstancePrice.objects.filter(instance_type__in=sorted(instance_types)).order_by()
    return PriceBook(map(_price, rows if on is None else _valid(rows, on)))


def list_prices(*, on: date) -> list[Price]:
    """List the prices of a day: one for each instance type, region and capacity type."""
    prices = [_price(row) for row in _valid(InstancePrice.objects.all(), on)]
    return sorted(prices, key=lambda price: (price.region, price.gpu_name, price.vcpu))


def list_history(instance_type: str) -> list[Price]:
    """Return every price that the type ever had, the newest first."""
    return [_price(row) for row in _rows_of(instance_type).order_by("-valid_from", "region", "-pk")]


def list_rows() -> list[Price]:
    """Return every row of the catalogue, by key and day."""
    order = ("instance_type", "region", "capacity_type", "valid_from")
    return [_price(row) for row in InstancePrice.objects.order_by(*order)]


def nodes_without_price() -> list[Node]:
    """Return GPU nodes that exist and whose price is not known, by cluster and name."""
    nodes = Node.objects.filter(gone_at=None, gpu_count__gt=0).order_by("cluster__name", "name")
    # Kinds are few, nodes are thousands.
    kinds = nodes.values_list("instance_type", "region", "cluster__region", "capacity_type")
    known = book(set(nodes.order_by().values_list("instance_type", flat=True)), on=date.max)
    unknown = Q(pk__in=[])
    for instance_type, region, of_cluster, capacity_type in kinds.order_by().distinct():
        if not known.has(PriceKey(instance_type, region or of_cluster, capacity_type)):
            kind = {"instance_type": instance_type, "capacity_type": capacity_type}
            unknown |= Q(**kind, region=region, cluster__region=of_cluster)
    # Capabilities are large, and would be read once for each node.
    return list(nodes.filter(unknown).select_related("cluster").defer("cluster__capabilities"))


def _valid(rows: QuerySet[InstancePrice], on: date) -> QuerySet[InstancePrice]:
    """Keep each key's newest row up to that day, or else its first one, as PriceBook.on chooses."""
    alike = InstancePrice.objects.filter(
        instance_type=OuterRef("instance_type"),
        region=OuterRef("region"),
        capacity_type=OuterRef("capacity_type"),
    )
    newer = alike.filter(valid_from__gt=OuterRef("valid_from"), valid_from__lte=on)
    earlier = alike.filter(valid_from__lt=OuterRef("valid_from"))
    return rows.filter(
        Q(valid_from__lte=on) & ~Exists(newer) | Q(valid_from__gt=on) & ~Exists(earlier)
    )


def _rows_of(instance_type: str) -> QuerySet[InstancePrice]:
    return InstancePrice.objects.filter(instance_type=instance_type)


def _price(row: InstancePrice) -> Price:
    return Price(
        id=row.pk,
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
        origin=row.origin,
        valid_from=row.valid_from,
    )
