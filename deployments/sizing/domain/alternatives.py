"""What could be asked for elsewhere, or if this cluster were set up otherwise, so that the list
says why it is not there. Only what would hold the model; one line for each kind of GPU.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from deployments.sizing.domain.memory import Need
from deployments.sizing.domain.ranking import Offer, ShareKind, Why

WHOLE_GPU: Final = "nvidia.com/gpu"
_COUNTS: Final = (1, 2, 4, 8)
# (compute slices, memory slices of 8) of the profiles that every MIG-capable GPU has.
_PROFILES: Final = ((1, 1), (2, 2), (3, 4), (7, 8))
_MICRO = Decimal("0.000001")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """An instance type of the price catalogue. `memory_mib` is of each of its GPUs."""

    instance_type: str
    gpu_name: str
    gpus: int
    memory_mib: int
    is_mig_capable: bool
    usd_per_hour_amount: Decimal

    def price_of(self, gpus: int) -> Decimal:
        return (self.usd_per_hour_amount * gpus / self.gpus).quantize(_MICRO)


def elsewhere(
    need: Need, listed: Sequence[Listed], here: Sequence[Offer], *, cluster: str, can_grow: bool
) -> list[Offer]:
    """Kinds of GPU that the cluster lacks, or has too few of in one node: the cheapest of each."""
    types = {offer.instance_type for offer in here}
    enough = {
        _key(offer.gpu_name)
        for offer in here
        if need.has_room(gpus=offer.gpus, memory_mib=offer.memory_mib)
    }
    found: dict[str, Offer] = {}
    for row in listed:
        count = _smallest_count(need, row)
        if not count or row.instance_type in types or _key(row.gpu_name) in enough:
            continue
        offer = _offer_elsewhere(row, count, cluster, can_grow=can_grow)
        best = found.get(row.gpu_name)
        if best is None or _price(offer) < _price(best):
            found[row.gpu_name] = offer
    return sorted(found.values(), key=_price)


def unsliced(need: Need, listed: Iterable[Listed], here: Sequence[Offer]) -> list[Offer]:
    """The smallest MIG slice that would do, of GPUs here that could be sliced and are not."""
    rows = {row.instance_type: row for row in listed if row.is_mig_capable}
    sliced = {offer.instance_type for offer in here if offer.kind is ShareKind.MIG}
    names = {offer.instance_type: offer.gpu_name for offer in here}
    return [
        offer
        for name in sorted(names)
        if name in rows and name not in sliced
        for offer in _smallest_slice(need, rows[name], names[name])
    ]


def profile_name(compute: int, memory_slices: int, memory_mib: int) -> str:
    """NVIDIA's name: 1g.10gb for 1 of 8 memory slices of an 80 GB GPU."""
    gigabytes = (2 * memory_mib * memory_slices // 8 + 1024) // 2048
    return f"{compute}g.{gigabytes}gb"


def _offer_elsewhere(row: Listed, count: int, cluster: str, *, can_grow: bool) -> Offer:
    words = f"{cluster} has no {row.instance_type} node"
    grow = "; Karpenter starts one only if a node pool allows it" if can_grow else ""
    return Offer(
        instance_type=row.instance_type,
        gpu_name=row.gpu_name.upper(),
        gpu_resource=WHOLE_GPU,
        gpus=count,
        memory_mib=row.memory_mib,
        kind=ShareKind.WHOLE,
        usd_per_hour_amount=row.price_of(count),
        missing=Why.NOT_HERE,
        missing_words=f"{words}{grow}",
    )


def _smallest_count(need: Need, row: Listed) -> int:
    for count in _COUNTS:
        if count <= row.gpus and need.has_room(gpus=count, memory_mib=row.memory_mib):
            return count
    return 0


def _smallest_slice(need: Need, row: Listed, gpu_name: str) -> Iterable[Offer]:
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
                missing=Why.NOT_OFFERED,
                missing_words=(
                    f"the GPUs of {row.instance_type} are not partitioned on this cluster"
                ),
            )
            return


def _price(offer: Offer) -> Decimal:
    return offer.usd_per_hour_amount or Decimal(0)


def _key(gpu_name: str) -> str:
    """Catalogue and nodes write a10g, A10G, NVIDIA-A10G, A100-SXM4-40GB."""
    plain = gpu_name.lower().removeprefix("nvidia-").removeprefix("tesla-")
    return re.split(r"[-_ ]", plain)[0]
