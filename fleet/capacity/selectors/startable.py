"""GPU shares of nodes that are not there yet, and that a node pool of Karpenter may start."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from fleet.clusters.domain import node_pools
from fleet.clusters.domain.capabilities import Capabilities
from fleet.gpus.domain import shares
from fleet.gpus.domain.capacity_types import ON_DEMAND, SPOT
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price
from fleet.models import Cluster

_SIZES = (1, 2, 4, 8, 16)
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An instance type bought in one way. `facts` say what it has; `price` None is not known."""

    facts: Price
    capacity_type: str
    price: Price | None

    @property
    def order(self) -> tuple[bool, bool, Decimal]:
        is_spot = self.capacity_type == SPOT
        return (is_spot, self.price is None, (self.price or self.facts).usd_per_hour_amount)

    @property
    def sizes(self) -> list[tuple[str, int, int]]:
        gpu = (self.facts.gpu_name, self.facts.gpu_memory_mib)
        return [(*gpu, units) for units in _SIZES if units <= self.facts.gpu_count]


def list_startable(
    *, cluster_id: int, there: Collection[tuple[str, str]], on: date
) -> list[GpuShare]:
    """Whole GPUs only: how a new node divides its GPUs is known when it is there. Of instance types
    with the same GPUs the cheapest; `there` are the instance and capacity types that exist as nodes
    already, which are left out.
    """
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    pools = Capabilities.from_json(cluster.capabilities).node_pools if cluster else None
    if cluster is None or not pools:
        return []
    listed = [price for price in prices.list_prices(on=on) if price.region == cluster.region]
    ready = [pool for pool in pools if pool.is_ready]
    found = [
        one
        for one in sorted(_candidates(listed), key=lambda one: one.order)
        if (one.facts.instance_type, one.capacity_type) not in there
        and any(node_pools.allows(p, one.facts.instance_type, one.capacity_type) for p in ready)
    ]
    return [
        _share(one, units)
        for one, units in _cheapest(found, {instance_type for instance_type, _ in there})
    ]


def _candidates(listed: Iterable[Price]) -> list[_Candidate]:
    """Each type on demand and as spot, whether or not that price is known."""
    by_type: dict[str, dict[str, Price]] = {}
    for price in listed:
        by_type.setdefault(price.instance_type, {})[price.capacity_type] = price
    return [
        _Candidate(next(iter(known.values())), capacity_type, known.get(capacity_type))
        for known in by_type.values()
        for capacity_type in (ON_DEMAND, SPOT)
    ]


def _cheapest(
    found: Iterable[_Candidate], types_there: Collection[str]
) -> Iterable[tuple[_Candidate, int]]:
    """The first of each size names the instance type, so that a size has one name however it is
    bought. Another capacity type of what is there is the same size.
    """
    names: dict[tuple[str, int, int], str] = {}
    for one in found:
        instance_type = one.facts.instance_type
        for size in one.sizes:
            is_there = instance_type in types_there
            if is_there or names.setdefault(size, instance_type) == instance_type:
                yield one, size[-1]


def _share(one: _Candidate, units: int) -> GpuShare:
    facts, price = one.facts, one.price
    amount = None
    if price is not None:
        amount = (price.usd_per_hour_amount * units / facts.gpu_count).quantize(_MICRO)
    return GpuShare(
        instance_type=facts.instance_type,
        gpu_name=facts.gpu_name.upper(),
        gpu_resource=shares.WHOLE,
        gpus=units,
        vram_mib=facts.gpu_memory_mib * units,
        usd_per_hour_amount=amount,
        price_source=price.source if price else "",
        price_date=price.valid_from if price else None,
        free_now=0,
        nodes=0,
        is_simulated=False,
        capacity_type=one.capacity_type,
        is_startable=True,
    )
