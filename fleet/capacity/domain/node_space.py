"""How many replicas of one size fit on nodes, and which resources are short."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from fleet.gpus.domain import shares
from fleet.kube.domain import quantities

GPU: Final = "GPU"
CPU: Final = "CPU"
MEMORY: Final = "memory"
TAINTS: Final = "taints"


@dataclass(frozen=True, slots=True)
class Amounts:
    """GPU units of one resource, CPU and memory. None is not known and does not limit."""

    gpus: int
    cpu_millicores: int | None = None
    memory_bytes: int | None = None

    def each(self) -> dict[str, int | None]:
        return {GPU: self.gpus, CPU: self.cpu_millicores, MEMORY: self.memory_bytes}


@dataclass(frozen=True, slots=True)
class NodeRoom:
    """The room on a node. `whole` is the allocatable amount of the node, `free` the part that no pod holds."""

    whole: Amounts
    free: Amounts

    def replicas(self, size: Amounts) -> int:
        """Number of replicas that fit; a replica never spans two nodes."""
        return min(_counts(self.free, size).values(), default=0)


def fitting(rooms: Sequence[NodeRoom], size: Amounts) -> int:
    return sum(room.replicas(size) for room in rooms)


def too_large(rooms: Sequence[NodeRoom], size: Amounts) -> list[str]:
    """Return the resources of which no node, even an empty one, has enough for one replica."""
    counts = [_counts(room.whole, size) for room in rooms]
    return [
        name for name in size.each() if counts and not any(count.get(name, 1) for count in counts)
    ]


def list_limiting_resources(rooms: Sequence[NodeRoom], size: Amounts) -> list[str]:
    """Return the resources that limit the number of further replicas."""
    short = set()
    for room in rooms:
        counts = _counts(room.free, size)
        least = min(counts.values(), default=0)
        short |= {name for name, count in counts.items() if count == least}
    return [name for name in size.each() if name in short]


def describe_free(rooms: Sequence[NodeRoom], name: str, gpu_resource: str) -> str:
    """Describe what is free: "1 of 2 GPUs free" or "4 of 96 cores free", for example."""
    free = sum(room.free.each()[name] or 0 for room in rooms)
    whole = sum(room.whole.each()[name] or 0 for room in rooms)
    if name == CPU:
        return f"{quantities.format_cores(free)} of {quantities.format_cores(whole)} cores free"
    if name == MEMORY:
        return f"{quantities.format_gib(free)} of {quantities.format_gib(whole)} memory free"
    return f"{free} of {describe(name, whole, gpu_resource)} free"


def describe(name: str, amount: int | None, gpu_resource: str) -> str:
    """Describe an amount: "1 GPU", "2 Neuron devices", "2 cores" or "400 Gi memory", for example."""
    if name == CPU:
        cores = quantities.format_cores(amount or 0)
        return f"{cores} core{'' if cores == '1' else 's'}"
    if name == MEMORY:
        return f"{quantities.format_gib(amount or 0)} memory"
    return shares.format_count(amount or 0, gpu_resource)


def _counts(amounts: Amounts, size: Amounts) -> dict[str, int]:
    """Count the replicas that fit by resource, without resources that are not requested or unknown."""
    available = amounts.each()
    return {
        name: max(0, amount) // requested
        for name, requested in size.each().items()
        if requested and (amount := available[name]) is not None
    }
