"""One node's hour split by who held its GPUs. Pure: the same facts in any order give the same rows.

The rows sum to price x time the node existed in the hour, to the last micro-dollar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from fleet.gpus.domain.intervals import HOUR, HOUR_MS, Interval
from fleet.gpus.domain.shares import GPU_PPM

MICRO = Decimal("0.000001")
# portal.core.money.split_exactly; handed in because the domain imports nothing.
Split = Callable[[Decimal, Sequence[int]], list[Decimal]]


@dataclass(frozen=True, slots=True, order=True)
class Holder:
    """Who is charged. An empty team is a pod that nobody registered."""

    team_slug: str
    namespace: str
    workload_name: str


@dataclass(frozen=True, slots=True)
class Allocation:
    """One pod's share of the node's GPUs over one interval."""

    holder: Holder
    share_ppm: int
    interval: Interval


@dataclass(frozen=True, slots=True)
class NodeLife:
    """`usd_per_hour_amount` None is not known: the time is split all the same, and costs 0."""

    gpu_count: int
    interval: Interval
    usd_per_hour_amount: Decimal | None


@dataclass(frozen=True, slots=True)
class Part:
    """`holder` None is idle. `gpu_milliseconds` is share x time; one GPU for an hour is 3,600,000."""

    holder: Holder | None
    gpu_milliseconds: int
    cost_amount: Decimal


def node_cost(life: NodeLife, start: datetime, end: datetime) -> Decimal:
    """Price x time the node existed in [start, end), to the micro-dollar."""
    if life.usd_per_hour_amount is None:
        return Decimal(0).quantize(MICRO)
    existed_ms = life.interval.overlap_ms(start, end)
    return (life.usd_per_hour_amount * existed_ms / HOUR_MS).quantize(MICRO)


def split_hour(
    life: NodeLife,
    held: Iterable[Allocation],
    hour: datetime,
    *,
    split: Split,
    until: datetime | None = None,
) -> list[Part]:
    """Holders in order of name, then idle; nothing for a node that did not exist in the hour.

    `until` cuts an hour that still runs. Time held outside the node's life does not count. Where
    pods together held more than there is, nothing is idle and the cost is split by what they held.
    """
    end = hour + HOUR if until is None else min(until, hour + HOUR)
    existed_ms = life.interval.overlap_ms(hour, end)
    if existed_ms == 0 or life.gpu_count == 0:
        return []
    weights = _weights(life, held, hour, end)
    idle = max(0, life.gpu_count * GPU_PPM * existed_ms - sum(weights.values()))
    ordered = sorted(weights)
    costs = split(node_cost(life, hour, end), [*(weights[h] for h in ordered), idle])
    times = [weights[h] // GPU_PPM for h in ordered]
    parts = [
        Part(holder, ms, cost) for holder, ms, cost in zip(ordered, times, costs[:-1], strict=True)
    ]
    idle_ms = max(0, life.gpu_count * existed_ms - sum(times)) if idle else 0
    return [*parts, Part(None, idle_ms, costs[-1])] if idle else parts


def _weights(
    life: NodeLife, held: Iterable[Allocation], start: datetime, end: datetime
) -> dict[Holder, int]:
    """Share x milliseconds for each holder, in ppm milliseconds."""
    weights: dict[Holder, int] = {}
    low = max(start, life.interval.start)
    high = end if life.interval.end is None else min(end, life.interval.end)
    for one in held:
        weight = one.share_ppm * one.interval.overlap_ms(low, high)
        if weight:
            weights[one.holder] = weights.get(one.holder, 0) + weight
    return weights


def difference(
    sealed: dict[Holder | None, tuple[int, Decimal]], parts: Iterable[Part]
) -> list[Part]:
    """What has to be added to the sealed sums to reach the new parts; empty when they are so."""
    wanted = {part.holder: (part.gpu_milliseconds, part.cost_amount) for part in parts}
    zero = (0, Decimal(0))
    changes = []
    for holder in sorted(sealed.keys() | wanted.keys(), key=lambda h: (h is None, h or _NOBODY)):
        old_ms, old_cost = sealed.get(holder, zero)
        new_ms, new_cost = wanted.get(holder, zero)
        if (old_ms, old_cost) != (new_ms, new_cost):
            changes.append(Part(holder, new_ms - old_ms, new_cost - old_cost))
    return changes


_NOBODY = Holder("", "", "")
