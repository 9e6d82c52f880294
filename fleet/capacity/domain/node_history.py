"""The hourly history of what ran on a node. The lines of an hour sum to what the node cost in it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Final

ZERO: Final = Decimal(0)
OTHER_TEAMS: Final = "other teams"


@dataclass(frozen=True, slots=True)
class HolderKey:
    """A holder of GPU time. Idle has no namespace; all that the reader may not see is one holder."""

    team_slug: str = ""
    namespace: str = ""
    workload_name: str = ""
    is_visible: bool = True

    @property
    def is_idle(self) -> bool:
        return self.is_visible and not self.namespace


HIDDEN: Final = HolderKey(is_visible=False)


@dataclass(frozen=True, slots=True)
class Line:
    """One holder's part of one hour, or of a longer period. `gpu_milliseconds` is GPU share x time."""

    holder: HolderKey
    gpu_milliseconds: int
    cost_amount: Decimal
    deployment: str = ""

    @property
    def label(self) -> str:
        if not self.holder.is_visible:
            return OTHER_TEAMS
        if self.holder.is_idle:
            return "idle"
        return self.deployment or self.holder.workload_name


@dataclass(frozen=True, slots=True)
class NodeHour:
    """An hour of a node. `usd_per_hour_amount` is None if no price was known, so that the cost counts as 0 for now."""

    hour: datetime
    lines: tuple[Line, ...]
    usd_per_hour_amount: Decimal | None
    price_source: str
    is_sealed: bool

    @property
    def cost_amount(self) -> Decimal:
        return sum((line.cost_amount for line in self.lines), ZERO)

    @property
    def gpu_milliseconds(self) -> int:
        return sum(line.gpu_milliseconds for line in self.lines)

    @property
    def is_priced(self) -> bool:
        return self.usd_per_hour_amount is not None


@dataclass(frozen=True, slots=True)
class GpuUse:
    """Utilisation of the node's held GPU time in one hour or day.

    `ratio` is the mean of what was measured, weighted by GPU time; None: nothing was. `covered` is the
    part of the held GPU time that was measured, None where nothing was held.
    """

    at: datetime
    ratio: float | None
    covered: float | None
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Measured:
    """The measured GPU use of one workload, over all its pods."""

    busy_ms: int
    observed_ms: int
    source: str


def merge(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Merge the lines into one for each holder: the most GPU time first, then other teams, then idle."""
    merged: dict[HolderKey, Line] = {}
    for line in lines:
        known = merged.get(line.holder)
        merged[line.holder] = line if known is None else _add(known, line)
    return tuple(sorted(merged.values(), key=_order))


def _add(known: Line, line: Line) -> Line:
    return replace(
        known,
        gpu_milliseconds=known.gpu_milliseconds + line.gpu_milliseconds,
        cost_amount=known.cost_amount + line.cost_amount,
        deployment=known.deployment or line.deployment,
    )


def _order(line: Line) -> tuple[int, int, str]:
    rank = 2 if line.holder.is_idle else int(not line.holder.is_visible)
    return rank, -line.gpu_milliseconds, line.label


def measure_use(
    at: datetime, held: Mapping[int | None, int], measured: Mapping[int, Measured]
) -> GpuUse:
    """Return the GPU use at a time. `held` are GPU milliseconds by workload, None for pods without one."""
    total = sum(held.values())
    known: list[tuple[float, int]] = []
    sources: set[str] = set()
    for workload, gpu_ms in held.items():
        sums = measured.get(workload) if workload is not None else None
        if sums is not None and sums.observed_ms > 0 and gpu_ms > 0:
            known.append((min(1.0, sums.busy_ms / sums.observed_ms), gpu_ms))
            sources.add(sums.source)
    weight = sum(gpu_ms for _, gpu_ms in known)
    return GpuUse(
        at=at,
        ratio=sum(ratio * gpu_ms for ratio, gpu_ms in known) / weight if weight else None,
        covered=weight / total if total > 0 else None,
        sources=tuple(sorted(sources)),
    )


def mean_use(points: Sequence[GpuUse], held_ms: Mapping[datetime, int]) -> float | None:
    """Return the mean use over a period, weighted by the measured GPU time."""
    parts = [
        (point.ratio, held_ms.get(point.at, 0) * point.covered)
        for point in points
        if point.ratio is not None and point.covered
    ]
    weight = sum(part for _, part in parts)
    return sum(ratio * part for ratio, part in parts) / weight if weight else None
