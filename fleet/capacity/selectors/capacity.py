"""The GPU shares of a cluster by instance and capacity type, with their price."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from typing import NamedTuple

from fleet.capacity.selectors import free_shares, node_spaces, startable
from fleet.capacity.selectors.node_spaces import NodeSpace
from fleet.gpus.domain import capacity_types, devices, neuron, offers, shares
from fleet.gpus.domain.devices import DeviceRequest
from fleet.gpus.domain.offers import GpuShare, for_capacity
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook
from portal.core import clock

__all__ = [
    "ClusterCapacity",
    "GpuShare",
    "SingleGpu",
    "for_capacity",
    "list_shares",
    "list_single_gpus",
    "read",
]

_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True)
class ClusterCapacity:
    """The GPU nodes of a cluster and the shares that they offer, read at one time."""

    spaces: Sequence[NodeSpace]
    shares: Sequence[GpuShare]


def read(*, cluster_id: int, instance_types: Collection[str] = ()) -> ClusterCapacity:
    """Read the capacity of a cluster. `instance_types` limits it to these types, without reading the nodes of
    others.
    """
    if not instance_types:
        spaces = node_spaces.list_spaces(cluster_id)
        return ClusterCapacity(spaces, _shares_of(cluster_id, spaces, _kinds_of(spaces)))
    # What could be started depends on all types that exist.
    existing = node_spaces.list_kinds(cluster_id)
    spaces = node_spaces.list_spaces(cluster_id, instance_types=instance_types)
    all_shares = _shares_of(cluster_id, spaces, existing)
    return ClusterCapacity(
        spaces, [share for share in all_shares if share.instance_type in instance_types]
    )


class SingleGpu(NamedTuple):
    """One GPU, or one part of a GPU, that a pod may request."""

    instance_type: str
    gpu_resource: str
    is_claimed: bool
    gpu_name: str


def list_single_gpus(*, cluster_id: int) -> list[SingleGpu]:
    """Return the single GPUs that nodes offer or would offer, cheapest first. Fast for any number of nodes."""
    spaces = node_spaces.one_of_each(cluster_id)
    found = offers.drop_neuron(_shares_of(cluster_id, spaces, _kinds_of(spaces)))
    singles: dict[tuple[str, str, bool], SingleGpu] = {}
    for share in found:
        if share.gpus == 1:
            size = (share.instance_type, share.gpu_resource, share.is_claimed)
            singles.setdefault(size, SingleGpu(*size, share.gpu_name))
    return list(singles.values())


def list_shares(*, cluster_id: int, instance_types: Collection[str] = ()) -> list[GpuShare]:
    """List the shares of existing nodes, of nodes that Karpenter may start, and of other capacity types of the same
    instance types with a known price. Cheapest first; shares of unknown price last.
    """
    return list(read(cluster_id=cluster_id, instance_types=instance_types).shares)


def _kinds_of(spaces: Sequence[NodeSpace]) -> set[tuple[str, str]]:
    return {(space.node.instance_type, space.node.capacity_type) for space in spaces}


def _shares_of(
    cluster_id: int, spaces: Sequence[NodeSpace], existing: Collection[tuple[str, str]]
) -> list[GpuShare]:
    by_kind: dict[tuple[str, str], list[NodeSpace]] = defaultdict(list)
    for space in spaces:
        if space.is_requestable:
            by_kind[space.node.instance_type, space.node.capacity_type].append(space)
    today = clock.now().date()
    book = prices.book({name for name, _ in by_kind}, on=today)
    gpu_shares = [
        _share(spaces, resource, units, book)
        for spaces in by_kind.values()
        for resource in _requestable(spaces)
        for units in _sizes(resource, spaces)
    ]
    gpu_shares += [
        _share_of(spaces, request, units, book)
        for spaces in by_kind.values()
        for request in _claimable(spaces)
        for units in _claim_sizes(request, spaces)
    ]
    gpu_shares += startable.list_startable(cluster_id=cluster_id, existing=existing, on=today)
    gpu_shares += _other_capacity_types(gpu_shares, list(by_kind.values()), book, today)
    return sorted(gpu_shares, key=_price_order)


def _requestable(spaces: Sequence[NodeSpace]) -> list[str]:
    names = {name for space in spaces for name in space.free}
    return sorted(name for name in names if shares.is_requestable(name))


def _sizes(resource: str, spaces: list[NodeSpace]) -> list[int]:
    """Return the numbers of units that a pod may request. Shared and MIG resources are requested one at a time:
    more units give no larger share.
    """
    largest = max(node_spaces.count_units(space.node, resource) for space in spaces)
    if resource == neuron.DEVICE:
        return neuron.sizes(spaces[0].node.instance_type, largest)
    gpus = spaces[0].gpus
    if resource != shares.WHOLE or gpus.replicas > 1 or gpus.single_profile:
        return [1] if largest else []
    return [size for size in (1, 2, 4, 8, 16) if size <= largest]


def _claimable(spaces: Sequence[NodeSpace]) -> list[DeviceRequest]:
    return list(dict.fromkeys(r for space in spaces for r in space.claimable.requests()))


def _claim_sizes(request: DeviceRequest, spaces: Sequence[NodeSpace]) -> list[int]:
    """Return the numbers of devices that a pod may claim. Slices are claimed one at a time, as those of the device
    plugin.
    """
    largest = max(space.claimable.most(request) for space in spaces)
    if request.kind == devices.MIG:
        return [1] if largest else []
    return [size for size in (1, 2, 4, 8, 16) if size <= largest]


def _share_of(
    spaces: list[NodeSpace], request: DeviceRequest, units: int, book: PriceBook
) -> GpuShare:
    """Return the share that `units` claimed devices make up."""
    offering = [space for space in spaces if space.claimable.most(request)]
    first = offering[0]
    matching = [d for space in offering for d in space.claimable.all if request.matches(d)]
    resource = devices.resource_of(matching[0])
    # A claim without a least memory gets any of them. A driver may not say it.
    known = [device.memory_mib for device in matching if device.memory_mib]
    memory = min(known, default=0) or shares.vram_mib(
        resource, 1, shares.ignore_division(first.gpus)
    )
    share = GpuShare(
        instance_type=first.node.instance_type,
        gpu_name=first.node.gpu_product,
        gpu_resource=resource,
        gpus=units,
        vram_mib=memory * units,
        usd_per_hour_amount=None,
        price_source="",
        price_date=None,
        free_now=0,
        nodes=len(offering),
        is_simulated=first.node.is_simulated,
        sharing="mig" if request.kind == devices.MIG else "whole",
        capacity_type=first.node.capacity_type,
        is_claimed=True,
    )
    free = [(space, space.free_devices(request) // units) for space in offering]
    return _priced(free_shares.count_free(share, free), first, book, clock.now().date())


def _share(spaces: list[NodeSpace], resource: str, units: int, book: PriceBook) -> GpuShare:
    offering = [space for space in spaces if resource in space.node.allocatable]
    node, gpus = offering[0].node, offering[0].gpus
    gpu_share = GpuShare(
        instance_type=node.instance_type,
        gpu_name=node.gpu_product,
        gpu_resource=resource,
        gpus=units,
        vram_mib=shares.vram_mib(resource, units, gpus),
        usd_per_hour_amount=None,
        price_source="",
        price_date=None,
        free_now=0,
        nodes=len(offering),
        is_simulated=node.is_simulated,
        sharing=shares.sharing(resource, gpus),
        capacity_type=node.capacity_type,
    )
    free = [(space, space.free.get(resource, 0) // max(units, 1)) for space in offering]
    return _priced(free_shares.count_free(gpu_share, free), offering[0], book, clock.now().date())


def _priced(share: GpuShare, space: NodeSpace, book: PriceBook, today: date) -> GpuShare:
    """Add the price of the share's capacity type; unchanged where it is not known."""
    node = space.node
    price = book.find_node_price(node, today, capacity_type=share.capacity_type)
    if price is None:
        return share
    amount = None
    if node.gpu_count:
        gpus = shares.ignore_division(space.gpus) if share.is_claimed else space.gpus
        ppm = shares.share_ppm(share.gpu_resource, share.gpus, gpus)
        whole = node.gpu_count * shares.GPU_PPM
        amount = (price.usd_per_hour_amount * ppm / whole).quantize(_MICRO)
    return replace(
        share,
        gpu_name=share.gpu_name or price.gpu_name,
        usd_per_hour_amount=amount,
        price_source=price.source,
        price_date=price.valid_from,
    )


def _other_capacity_types(
    gpu_shares: Sequence[GpuShare],
    kinds: Sequence[Sequence[NodeSpace]],
    book: PriceBook,
    today: date,
) -> list[GpuShare]:
    """Return the same shares in other capacity types with a known price, of which no nodes exist now."""
    known = {(share.size, share.is_claimed, share.capacity_type) for share in gpu_shares}
    space_of = {spaces[0].node.instance_type: spaces[0] for spaces in kinds}
    others = []
    for share in gpu_shares:
        for kind in (capacity_types.ON_DEMAND, capacity_types.SPOT):
            if share.nodes and (share.size, share.is_claimed, kind) not in known:
                known.add((share.size, share.is_claimed, kind))
                space = space_of[share.instance_type]
                others.append(_priced(share.absent(kind), space, book, today))
    return [share for share in others if share.usd_per_hour_amount is not None]


def _price_order(share: GpuShare) -> tuple[bool, Decimal, str, str, int, str]:
    amount = share.usd_per_hour_amount
    return (
        amount is None,
        amount or Decimal(0),
        share.instance_type,
        share.gpu_resource,
        share.gpus,
        share.capacity_type,
    )
