"""GPU offers that the cluster lacks, so that the ranking can explain why they are missing.

Only offers with enough memory; one for each kind of GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from deployments.sizing.domain.memory import Need
from deployments.sizing.domain.ranking import Offer, RejectionReason, ShareKind
from fleet.gpus.domain import shares

_COUNTS: Final = (1, 2, 4, 8)
# (compute slices, memory slices of 8) of the profiles that every MIG-capable GPU has.
_PROFILES: Final = ((1, 1), (2, 2), (3, 4), (7, 8))
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedInstanceType:
    """An instance type of the price catalogue. `memory_mib` is for each GPU."""

    instance_type: str
    gpu_name: str
    gpus: int
    memory_mib: int
    is_mig_capable: bool
    usd_per_hour_amount: Decimal

    def price_of(self, gpus: int) -> Decimal:
        return (self.usd_per_hour_amount * gpus / self.gpus).quantize(_MICRO)


def offers_elsewhere(
    need: Need,
    listed: Sequence[ListedInstanceType],
    local_offers: Sequence[Offer],
    *,
    cluster: str,
    can_grow: bool,
) -> list[Offer]:
    """Return the cheapest offer of each kind of GPU that the cluster lacks or has too few of per node."""
    local_types = {offer.instance_type for offer in local_offers}
    sufficient = {
        _key(offer.gpu_name)
        for offer in local_offers
        if need.has_room(gpus=offer.gpus, memory_mib=offer.memory_mib)
    }
    cheapest: dict[str, Offer] = {}
    for row in listed:
        count = _smallest_count(need, row)
        if not count or row.instance_type in local_types or _key(row.gpu_name) in sufficient:
            continue
        offer = _offer_elsewhere(row, count, cluster, can_grow=can_grow)
        best = cheapest.get(row.gpu_name)
        if best is None or _price(offer) < _price(best):
            cheapest[row.gpu_name] = offer
    return sorted(cheapest.values(), key=_price)


def offers_partitioned(
    need: Need, listed: Iterable[ListedInstanceType], local_offers: Sequence[Offer]
) -> list[Offer]:
    """Return the smallest sufficient MIG slice of each MIG-capable GPU that is not partitioned."""
    rows = {row.instance_type: row for row in listed if row.is_mig_capable}
    sliced = {offer.instance_type for offer in local_offers if offer.kind is ShareKind.MIG}
    names = {offer.instance_type: offer.gpu_name for offer in local_offers}
    return [
        offer
        for name in sorted(names)
        if name in rows and name not in sliced
        for offer in _smallest_slice(need, rows[name], names[name])
    ]


def profile_name(compute: int, memory_slices: int, memory_mib: int) -> str:
    """Return NVIDIA's name of a slice: 1g.10gb for 1 of 8 memory slices of an 80 GB GPU."""
    gigabytes = (2 * memory_mib * memory_slices // 8 + 1024) // 2048
    return f"{compute}g.{gigabytes}gb"


def _offer_elsewhere(row: ListedInstanceType, count: int, cluster: str, *, can_grow: bool) -> Offer:
    message = f"{cluster} has no {row.instance_type} node"
    grow = "; Karpenter starts one only if a node pool allows it" if can_grow else ""
    return Offer(
        instance_type=row.instance_type,
        gpu_name=shares.format_product(row.gpu_name),
        gpu_resource=shares.whole_resource(row.gpu_name),
        gpus=count,
        memory_mib=row.memory_mib,
        kind=ShareKind.WHOLE,
        usd_per_hour_amount=row.price_of(count),
        missing=RejectionReason.NOT_HERE,
        missing_message=f"{message}{grow}",
    )


def _smallest_count(need: Need, row: ListedInstanceType) -> int:
    for count in _COUNTS:
        if count <= row.gpus and need.has_room(gpus=count, memory_mib=row.memory_mib):
            return count
    return 0


def _smallest_slice(need: Need, row: ListedInstanceType, gpu_name: str) -> Iterable[Offer]:
    for compute, slices in _PROFILES[:-1]:
        memory = row.memory_mib * slices // 8
        if need.has_room(gpus=1, memory_mib=memory):
            profile = profile_name(compute, slices, row.memory_mib)
            yield Offer(
                instance_type=row.instance_type,
                gpu_name=gpu_name,
                gpu_resource=f"nvidia.com/mig-{profile}",
                gpus=1,
                memory_mib=memory,
                kind=ShareKind.MIG,
                usd_per_hour_amount=(row.price_of(1) * slices / 8).quantize(_MICRO),
                missing=RejectionReason.NOT_OFFERED,
                missing_message=(
                    f"the GPUs of {row.instance_type} are not partitioned on this cluster"
                ),
            )
            return


def _price(offer: Offer) -> Decimal:
    return offer.usd_per_hour_amount or Decimal(0)


def _key(gpu_name: str) -> str:
    """Normalise names like a10g, A10G, NVIDIA-A10G and A100-SXM4-40GB."""
    plain = gpu_name.lower().removeprefix("nvidia-").removeprefix("nvidia ").removeprefix("tesla-")
    return re.split(r"[-_ ]", plain)[0]
