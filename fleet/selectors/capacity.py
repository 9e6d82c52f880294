"""What a cluster can give: GPU shares by instance type, their price, and what fits now."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from django.db.models import Sum

from fleet.domain import shares
from fleet.domain.gpu_shares import GpuShare
from fleet.models import Node, Pod
from fleet.selectors import prices, startable
from fleet.selectors.prices import PriceBook, PriceKey
from portal.core import clock

__all__ = ["Fit", "GpuShare", "fits_now", "list_shares"]

_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class Fit:
    """`reason` says in words why not, or where."""

    ok: bool
    reason: str


@dataclass(frozen=True, slots=True)
class _NodeSpace:
    node: Node
    gpus: shares.NodeGpus
    free: dict[str, int]


def list_shares(*, cluster_id: int) -> list[GpuShare]:
    """Of the nodes that are there and those that Karpenter may start. Cheapest first; shares of
    unknown price last.
    """
    by_type: dict[str, list[_NodeSpace]] = defaultdict(list)
    for space in _spaces(cluster_id):
        by_type[space.node.instance_type].append(space)
    book = prices.book(by_type.keys())
    found = [
        _share(spaces, resource, units, book)
        for spaces in by_type.values()
        for resource in sorted({name for space in spaces for name in space.free})
        for units in _sizes(resource, spaces)
    ]
    found += startable.list_startable(
        cluster_id=cluster_id, there=by_type.keys(), on=clock.now().date()
    )
    return sorted(found, key=_price_order)


def fits_now(
    *, cluster_id: int, instance_type: str, gpu_resource: str, gpus: int, replicas: int
) -> Fit:
    """Whether so many replicas could be scheduled on GPUs that are free at this moment."""
    spaces = [s for s in _spaces(cluster_id) if s.node.instance_type == instance_type]
    if not spaces:
        return Fit(ok=False, reason=f"There is no {instance_type} node in the cluster now.")
    offering = [space for space in spaces if gpu_resource in space.node.allocatable]
    if not offering:
        return Fit(ok=False, reason=f"No {instance_type} node offers {gpu_resource}.")
    largest = max(_units(space.node, gpu_resource) for space in offering)
    if gpus > largest:
        return Fit(
            ok=False,
            reason=f"One {instance_type} has {largest} {gpu_resource}; a replica asks for {gpus}.",
        )
    free = _replicas(offering, gpu_resource, gpus)
    unusable = sum(1 for space in offering if not space.free)
    if free >= replicas:
        return Fit(ok=True, reason=f"{free} of this size fit on free GPUs now.")
    reason = f"{free} of {replicas} fit now: {_free_words(offering, gpu_resource)}"
    if unusable:
        reason += f"; {unusable} of {len(offering)} nodes are not ready or cordoned"
    return Fit(ok=False, reason=f"{reason}.")


def _spaces(cluster_id: int) -> list[_NodeSpace]:
    nodes = Node.objects.filter(cluster_id=cluster_id, gone_at=None, gpu_count__gt=0)
    nodes = nodes.select_related("cluster")
    taken = (
        Pod.objects.filter(cluster_id=cluster_id, gone_at=None, ended_at=None, gpu_units__gt=0)
        .exclude(node=None)
        .values_list("node_id", "gpu_resource")
        .annotate(units=Sum("gpu_units"))
        .order_by()
    )
    used = {(node, resource): units for node, resource, units in taken}
    return [_space(node, used) for node in nodes]


def _space(node: Node, used: dict[tuple[int | None, str], int]) -> _NodeSpace:
    free: dict[str, int] = {}
    if node.is_ready and node.is_schedulable:
        for name in node.allocatable:
            if shares.is_gpu(name):
                free[name] = max(0, _units(node, name) - used.get((node.pk, name), 0))
    return _NodeSpace(node, shares.gpus_of(node.labels, node.allocatable), free)


def _units(node: Node, resource: str) -> int:
    amount = str(node.allocatable.get(resource, "0"))
    return int(amount) if amount.isdigit() else 0


def _sizes(resource: str, spaces: list[_NodeSpace]) -> list[int]:
    """Shared and MIG resources are asked for one at a time: more buys no larger share."""
    largest = max(_units(space.node, resource) for space in spaces)
    gpus = spaces[0].gpus
    if resource != shares.WHOLE or gpus.replicas > 1 or gpus.single_profile:
        return [1] if largest else []
    return [size for size in (1, 2, 4, 8, 16) if size <= largest]


def _share(spaces: list[_NodeSpace], resource: str, units: int, book: PriceBook) -> GpuShare:
    offering = [space for space in spaces if resource in space.node.allocatable]
    node, gpus = offering[0].node, offering[0].gpus
    region = node.region or node.cluster.region
    price = book.on(PriceKey(node.instance_type, region, node.capacity_type), clock.now().date())
    ppm = shares.share_ppm(resource, units, gpus)
    amount = None
    if price is not None and node.gpu_count:
        amount = price.usd_per_hour_amount * ppm / (node.gpu_count * shares.GPU_PPM)
    return GpuShare(
        instance_type=node.instance_type,
        gpu_name=node.gpu_product or (price.gpu_name if price else ""),
        gpu_resource=resource,
        gpus=units,
        vram_mib=shares.vram_mib(resource, units, gpus),
        usd_per_hour_amount=None if amount is None else amount.quantize(_MICRO),
        price_source=price.source if price else "",
        price_date=price.valid_from if price else None,
        free_now=_replicas(offering, resource, units),
        nodes=len(offering),
        is_simulated=node.is_simulated,
        sharing=shares.sharing(resource, gpus),
    )


def _replicas(spaces: list[_NodeSpace], resource: str, units: int) -> int:
    """Each node on its own: a replica never spans two."""
    return sum(space.free.get(resource, 0) // max(units, 1) for space in spaces)


def _free_words(spaces: list[_NodeSpace], resource: str) -> str:
    free = sum(space.free.get(resource, 0) for space in spaces)
    whole = sum(_units(space.node, resource) for space in spaces)
    return f"{free} of {whole} {resource} are free on {len(spaces)} nodes"


def _price_order(share: GpuShare) -> tuple[bool, Decimal, str, str, int]:
    amount = share.usd_per_hour_amount
    return (
        amount is None,
        amount or Decimal(0),
        share.instance_type,
        share.gpu_resource,
        share.gpus,
    )
