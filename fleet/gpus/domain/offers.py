"""GPU shares that a cluster offers, with their price and availability."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal

from fleet.gpus.domain import capacity_types, neuron
from fleet.gpus.domain.capacity_types import ANY, ON_DEMAND


@dataclass(frozen=True, slots=True)
class GpuShare:
    """One way to request GPUs. `usd_per_hour_amount` is for one replica; None is not known.

    `free_now` is the number of replicas that fit on free GPUs of nodes that take every pod which requests this
    capacity type, `free_tainted` that on nodes which take only those that tolerate one of `taints`; `nodes` is the number of nodes of the
    instance type and capacity type. Without nodes, `is_startable` says whether one would be started.
    """

    instance_type: str
    gpu_name: str
    gpu_resource: str
    gpus: int
    vram_mib: int
    usd_per_hour_amount: Decimal | None
    price_source: str
    price_date: date | None
    free_now: int
    nodes: int
    is_simulated: bool
    # "whole", "mig", "mps" or "shared"; shared replicas have no memory isolation.
    sharing: str = "whole"
    capacity_type: str = ON_DEMAND
    is_startable: bool = False
    free_tainted: int = 0
    # As kubectl writes them.
    taints: tuple[str, ...] = ()
    # Of `free_now`: on nodes whose taints only a request for spot tolerates, with these.
    free_for_spot: int = 0
    spot_taints: tuple[str, ...] = ()
    # Devices of a DRA driver: pods claim them instead of requesting the resource.
    is_claimed: bool = False

    @property
    def size(self) -> tuple[str, str, int]:
        return (self.instance_type, self.gpu_resource, self.gpus)

    def absent(self, capacity_type: str) -> GpuShare:
        """Return the same share in a capacity type of which there is no node, without a price."""
        return replace(
            self,
            usd_per_hour_amount=None,
            price_source="",
            price_date=None,
            free_now=0,
            free_tainted=0,
            taints=(),
            free_for_spot=0,
            spot_taints=(),
            nodes=0,
            capacity_type=capacity_type,
            is_startable=False,
        )


def filter_shares(shares: Iterable[GpuShare], *, is_claimed: bool) -> list[GpuShare]:
    """Keep the shares of device plugins, or those that are claimed. A node pool does not say which driver its nodes
    have: what it starts is among both.
    """
    return [s for s in shares if s.is_claimed is is_claimed or (is_claimed and not s.nodes)]


def drop_neuron(shares: Iterable[GpuShare]) -> list[GpuShare]:
    """Drop Neuron devices, for what needs CUDA."""
    return [share for share in shares if share.gpu_resource != neuron.DEVICE]


def for_capacity(shares: Iterable[GpuShare], requested: str) -> list[GpuShare]:
    """Return one share of each size for a request of this capacity type, in the order of `shares`.

    The price is that of the requested capacity type, or unknown. For a request of any type, the on-demand price is
    the upper bound, and all nodes count.
    """
    by_size: dict[tuple[str, str, int], list[GpuShare]] = {}
    for share in shares:
        by_size.setdefault(share.size, []).append(share)
    return [_chosen(alike, requested) for alike in by_size.values()]


def _chosen(alike: list[GpuShare], requested: str) -> GpuShare:
    ordered = sorted(alike, key=lambda share: capacity_types.order(share.capacity_type))
    suiting = [s for s in ordered if capacity_types.suits(s.capacity_type, requested)]
    if not suiting:
        return ordered[0].absent(requested)
    first = suiting[0]
    # Who runs on any capacity tolerates no taint of spot nodes.
    away = [share for share in suiting if requested == ANY and share.free_for_spot]
    kept_away = sum(share.free_for_spot for share in away)
    taints = {
        *(name for share in suiting for name in share.taints),
        *(name for share in away for name in share.spot_taints),
    }
    return replace(
        first,
        free_now=sum(share.free_now for share in suiting) - kept_away,
        free_tainted=sum(share.free_tainted for share in suiting) + kept_away,
        taints=tuple(sorted(taints)),
        nodes=sum(share.nodes for share in suiting),
        is_startable=any(share.is_startable for share in suiting),
        capacity_type=ANY if requested == ANY and len(suiting) > 1 else first.capacity_type,
    )
