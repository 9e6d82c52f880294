"""GPU shares of nodes that are not there yet, and that a node pool of Karpenter may start."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import date
from decimal import Decimal

from fleet.domain import node_pools, shares
from fleet.domain.capabilities import Capabilities
from fleet.domain.gpu_shares import GpuShare
from fleet.models import Cluster
from fleet.selectors import prices
from fleet.selectors.prices import Price

_SIZES = (1, 2, 4, 8, 16)
_MICRO = Decimal("0.000001")


def list_startable(*, cluster_id: int, there: Collection[str], on: date) -> list[GpuShare]:
    """Whole GPUs only: how a new node divides its GPUs is known when it is there. Of instance types
    with the same GPUs the cheapest; those that exist as nodes already are left out.
    """
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    pools = Capabilities.from_json(cluster.capabilities).node_pools if cluster else None
    if cluster is None or not pools:
        return []
    listed = [
        price
        for price in prices.list_prices(on=on)
        if price.region == cluster.region and price.instance_type not in there
    ]
    allowed = [price for price in listed if _is_allowed(price, pools)]
    return [_share(price, units) for price, units in _cheapest(allowed)]


def _is_allowed(price: Price, pools: Iterable[node_pools.NodePool]) -> bool:
    return price.capacity_type == "on-demand" and any(
        pool.is_ready and node_pools.allows(pool, price.instance_type, "any") for pool in pools
    )


def _cheapest(listed: Iterable[Price]) -> list[tuple[Price, int]]:
    found: dict[tuple[str, int, int], Price] = {}
    for price in sorted(listed, key=lambda price: price.usd_per_hour_amount):
        for units in _SIZES:
            if units <= price.gpu_count:
                found.setdefault((price.gpu_name, price.gpu_memory_mib, units), price)
    return [(price, units) for (_, _, units), price in found.items()]


def _share(price: Price, units: int) -> GpuShare:
    amount = price.usd_per_hour_amount * units / price.gpu_count
    return GpuShare(
        instance_type=price.instance_type,
        gpu_name=price.gpu_name.upper(),
        gpu_resource=shares.WHOLE,
        gpus=units,
        vram_mib=price.gpu_memory_mib * units,
        usd_per_hour_amount=amount.quantize(_MICRO),
        price_source=price.source,
        price_date=price.valid_from,
        free_now=0,
        nodes=0,
        is_simulated=False,
    )
