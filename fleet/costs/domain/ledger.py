"""Split one node's hour by the holders of its GPUs. The order of the facts does not matter.

The rows sum to price x time the node existed in the hour, to the last micro-dollar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from fleet.gpus.domain.intervals import HOUR, HOUR_MS, LeaseInterval
from fleet.gpus.domain.shares import GPU_PPM

MICRO = Decimal("0.000001")
# portal.core.money.split_exactly; a parameter because the domain does not import the portal.
Split = Callable[[Decimal, Sequence[int]], list[Decimal]]


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """The workload that is charged. An empty team means an unregistered pod."""

    team_slug: str
    namespace: str
    workload_name: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """One pod's GPU share on the node over one interval."""

    holder: Holder
    share_ppm: int
    interval: LeaseInterval


@dataclass(frozen=True, slots=True)
class NodeLife:
    """A node's life and price. `usd_per_hour_amount` is None if it is unknown: time is split as usual, at cost 0."""

    gpu_count: int
    interval: LeaseInterval
    usd_per_hour_amount: Decimal | None


@dataclass(frozen=True, slots=True)
class LedgerPart:
    """A holder's part of a node's hour. `holder` None means idle. `gpu_milliseconds` is GPU share x time; one GPU
    for an hour is 3,600,000.
    """

    holder: Holder | None
    gpu_milliseconds: int
    cost_amount: Decimal


def node_cost(life: NodeLife, start: datetime, end: datetime) -> Decimal:
    """Price x the time that the node existed in [start, end), to the micro-dollar."""
    if life.usd_per_hour_amount is None:
        return Decimal(0).quantize(MICRO)
    existed_ms = life.interval.overlap_ms(start, end)
    return (life.usd_per_hour_amount * existed_ms / HOUR_MS).quantize(MICRO)


def split_hour(
    life: NodeLife,
    allocations: Iterable[Allocation],
    hour: datetime,
    *,
    split: Split,
    until: datetime | None = None,
) -> list[LedgerPart]:
    """Split the hour of a node into parts by holder in order of name, then idle. Empty for a node that did not
    exist in the hour.

    `until` ends an hour that is not over. Allocations outside the node's life do not count. Where pods hold more
    than the node has, nothing is idle and the cost is split by their allocations.
    """
    end = hour + HOUR if until is None else min(until, hour + HOUR)
    existed_ms = life.interval.overlap_ms(hour, end)
    if existed_ms == 0 or life.gpu_count == 0:
        return []
    weights = _weights(life, allocations, hour, end)
    idle = max(0, life.gpu_count * GPU_PPM * existed_ms - sum(weights.values()))
    ordered = sorted(weights)
    costs = split(node_cost(life, hour, end), [*(weights[h] for h in ordered), idle])
    times = [weights[h] // GPU_PPM for h in ordered]
    parts = [
        LedgerPart(holder, ms, cost)
        for holder, ms, cost in zip(ordered, times, costs[:-1], strict=True)
    ]
    idle_ms = max(0, life.gpu_count * existed_ms - sum(times)) if idle else 0
    return [*parts, LedgerPart(None, idle_ms, costs[-1])] if idle else parts


def _weights(
    life: NodeLife, allocations: Iterable[Allocation], start: datetime, end: datetime
) -> dict[Holder, int]:
    """Return the GPU share x time of each holder, in ppm milliseconds."""
    weights: dict[Holder, int] = {}
    low = max(start, life.interval.start)
    high = end if life.interval.end is None else min(end, life.interval.end)
    for allocation in allocations:
        weight = allocation.share_ppm * allocation.interval.overlap_ms(low, high)
        if weight:
            weights[allocation.holder] = weights.get(allocation.holder, 0) + weight
    return weights


def difference(
    sealed: dict[Holder | None, tuple[int, Decimal]], parts: Iterable[LedgerPart]
) -> list[LedgerPart]:
    """Return the parts to add to the sealed sums to reach the new parts; empty when they are equal."""
    correct = {part.holder: (part.gpu_milliseconds, part.cost_amount) for part in parts}
    zero = (0, Decimal(0))
    changes = []
    for holder in sorted(sealed.keys() | correct.keys(), key=lambda h: (h is None, h or _NOBODY)):
        old_ms, old_cost = sealed.get(holder, zero)
        new_ms, new_cost = correct.get(holder, zero)
        if (old_ms, old_cost) != (new_ms, new_cost):
            changes.append(LedgerPart(holder, new_ms - old_ms, new_cost - old_cost))
    return changes


_NOBODY = Holder("", "", "")
