"""GPU shares of nodes that do not exist yet and that a Karpenter node pool can start."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from fleet.clusters.domain import node_pools
from fleet.clusters.domain.capabilities import Capabilities
from fleet.gpus.domain import neuron, shares
from fleet.gpus.domain.capacity_types import ON_DEMAND, RESERVED, SPOT
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import Price
from fleet.models import Cluster

_SIZES = (1, 2, 4, 8, 16)
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class _Candidate:
    """An instance type in one capacity type. `facts` is its hardware; `price` None is not known."""

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
        most = self.facts.gpu_count
        if neuron.is_product(self.facts.gpu_name):
            return [(*gpu, units) for units in neuron.sizes(self.facts.instance_type, most)]
        return [(*gpu, units) for units in _SIZES if units <= most]


def list_startable(
    *, cluster_id: int, existing: Collection[tuple[str, str]], on: date
) -> list[GpuShare]:
    """List the whole GPUs that Karpenter may start; the sharing of a new node is not known in advance. Among
    instance types with equal GPUs, only the cheapest is listed. `existing` are the instance and capacity types
    of the nodes, which are left out.
    """
    rows = Cluster.objects.filter(pk=cluster_id).only("region", "capabilities")
    cluster = rows.order_by().first()
    pools = Capabilities.from_json(cluster.capabilities).node_pools if cluster else None
    if cluster is None or not pools:
        return []
    listed = [price for price in prices.list_prices(on=on) if price.region == cluster.region]
    ready = [pool for pool in pools if pool.is_ready]
    candidates = [
        candidate
        for candidate in sorted(_candidates(listed), key=lambda candidate: candidate.order)
        if (candidate.facts.instance_type, candidate.capacity_type) not in existing
        and any(
            candidate.capacity_type in node_pools.starts(pool, candidate.facts.instance_type)
            for pool in ready
        )
    ]
    return [
        _share(candidate, units)
        for candidate, units in _cheapest(
            candidates, {instance_type for instance_type, _ in existing}
        )
    ]


def _candidates(listed: Iterable[Price]) -> list[_Candidate]:
    """Return each type in every capacity type that Karpenter starts, even without a known price."""
    by_type: dict[str, dict[str, Price]] = {}
    for price in listed:
        by_type.setdefault(price.instance_type, {})[price.capacity_type] = price
    return [
        _Candidate(next(iter(known.values())), capacity_type, known.get(capacity_type))
        for known in by_type.values()
        for capacity_type in (ON_DEMAND, RESERVED, SPOT)
    ]


def _cheapest(
    candidates: Iterable[_Candidate], existing_types: Collection[str]
) -> Iterable[tuple[_Candidate, int]]:
    """The first candidate of each size determines its instance type for all capacity types. Another
    capacity type of an existing instance type is always included.
    """
    names: dict[tuple[str, int, int], str] = {}
    for candidate in candidates:
        instance_type = candidate.facts.instance_type
        for size in candidate.sizes:
            exists = instance_type in existing_types
            if exists or names.setdefault(size, instance_type) == instance_type:
                yield candidate, size[-1]


def _share(candidate: _Candidate, units: int) -> GpuShare:
    facts, price = candidate.facts, candidate.price
    amount = None
    if price is not None:
        amount = (price.usd_per_hour_amount * units / facts.gpu_count).quantize(_MICRO)
    return GpuShare(
        instance_type=facts.instance_type,
        gpu_name=shares.format_product(facts.gpu_name),
        gpu_resource=shares.whole_resource(facts.gpu_name),
        gpus=units,
        vram_mib=facts.gpu_memory_mib * units,
        usd_per_hour_amount=amount,
        price_source=price.source if price else "",
        price_date=price.valid_from if price else None,
        free_now=0,
        nodes=0,
        is_simulated=False,
        capacity_type=candidate.capacity_type,
        is_startable=True,
    )
