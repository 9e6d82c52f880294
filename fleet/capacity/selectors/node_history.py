"""The history of a node: hour by hour, and over a period with its GPU utilisation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import F, Max, Sum
from django.db.models.functions import TruncDay

from fleet.capacity.domain import node_history
from fleet.capacity.domain.node_history import (
    HIDDEN,
    ZERO,
    GpuUse,
    HolderKey,
    Line,
    Measured,
    NodeHour,
)
from fleet.capacity.selectors import node_rows, overview
from fleet.capacity.selectors.node_rows import HolderSum, WorkloadName
from fleet.costs.domain.results import Step
from fleet.gpus.domain.intervals import HOUR, hour_of
from fleet.models import Node, WorkloadHour
from fleet.telemetry.domain.counters import source_label
from portal.accounts.policy import Actor
from portal.core import clock

_LINES_PER_PAGE: Final = 70
_DAY: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class HourPage:
    """The newest first. `older_than` continues it; None: there are no older hours."""

    hours: tuple[NodeHour, ...]
    older_than: datetime | None


@dataclass(frozen=True, slots=True)
class NodePeriod:
    """A period of a node. `lines` sum to `cost_amount`, and `by_step` to `lines`. `unpriced_hours` count as 0."""

    start: datetime
    end: datetime
    step: Step
    lines: tuple[Line, ...]
    by_step: Mapping[datetime, tuple[Line, ...]]
    use: tuple[GpuUse, ...]
    mean_use: float | None
    unpriced_hours: int

    @property
    def cost_amount(self) -> Decimal:
        return sum((line.cost_amount for line in self.lines), ZERO)

    @property
    def is_priced(self) -> bool:
        """Whether any of its time has a price: else its cost is not known, which is not $0."""
        return any(line.cost_amount for line in self.lines)

    @property
    def idle_amount(self) -> Decimal:
        return sum((line.cost_amount for line in self.lines if line.holder.is_idle), ZERO)

    @property
    def gpu_milliseconds(self) -> int:
        return sum(line.gpu_milliseconds for line in self.lines)


def hours(*, actor: Actor, node: Node, start: datetime, end: datetime) -> HourPage:
    """Return the whole hours of [start, end), about 70 lines. Other teams' parts are one line of the hour."""
    sealed, since = node_rows.newest_sums(node, start, end, limit=_LINES_PER_PAGE)
    rows = sealed + node_rows.estimate_holders(node, since, end)
    names = node_rows.map_workloads(node, {row.holder for row in rows})
    to_line = _to_line(actor, names)
    by_hour: dict[datetime, list[HolderSum]] = defaultdict(list)
    for row in rows:
        by_hour[row.at].append(row)
    ordered = sorted(by_hour, reverse=True)
    return HourPage(
        tuple(_hour(hour, by_hour[hour], to_line) for hour in ordered),
        since if since > start else None,
    )


def period(*, actor: Actor, node: Node, days: int, step: Step) -> NodePeriod:
    """Return the last `days` days of the node, up to its end."""
    end = min(clock.now(), node.gone_at or clock.now())
    end = hour_of(end) + HOUR
    start = end - timedelta(days=days)
    if step is Step.DAY:
        start = start.replace(hour=0)
    rows = node_rows.sums(node, start, end, step) + node_rows.estimate_holders(node, start, end)
    names = node_rows.map_workloads(node, {row.holder for row in rows})
    to_line = _to_line(actor, names)
    lines: dict[datetime, list[Line]] = defaultdict(list)
    held: dict[datetime, dict[int | None, int]] = defaultdict(lambda: defaultdict(int))
    for row in rows:
        at = _step_of(row.at, step)
        lines[at].append(to_line(row))
        if not row.holder.is_idle:
            name = names.get(row.holder)
            held[at][name.id if name else None] += row.gpu_milliseconds
    measured = _measured({name.id for name in names.values()}, start, end, step)
    use = tuple(
        node_history.measure_use(at, held.get(at, {}), measured.get(at, {}))
        for at in _steps(max(start, _step_of(node.first_seen_at, step)), end, step)
    )
    by_step = {at: node_history.merge(parts) for at, parts in sorted(lines.items())}
    return NodePeriod(
        start=start,
        end=end,
        step=step,
        lines=node_history.merge(line for parts in by_step.values() for line in parts),
        by_step=by_step,
        use=use,
        mean_use=node_history.mean_use(use, {at: sum(of.values()) for at, of in held.items()}),
        unpriced_hours=node.unpriced_hours.filter(hour__gte=start, hour__lt=end).count(),
    )


def _to_line(actor: Actor, names: Mapping[HolderKey, WorkloadName]) -> Callable[[HolderSum], Line]:
    visibility = overview.decide_visibility(actor)

    def line(row: HolderSum) -> Line:
        if not visibility.covers(row.holder.team_slug):
            return Line(HIDDEN, row.gpu_milliseconds, row.cost_amount)
        name = names.get(row.holder)
        deployment = name.deployment if name else ""
        return Line(row.holder, row.gpu_milliseconds, row.cost_amount, deployment)

    return line


def _hour(
    hour: datetime, rows: Sequence[HolderSum], to_line: Callable[[HolderSum], Line]
) -> NodeHour:
    priced = [row for row in rows if row.usd_per_hour_amount is not None]
    newest = priced[-1] if priced else None
    return NodeHour(
        hour=hour,
        lines=node_history.merge(map(to_line, rows)),
        usd_per_hour_amount=newest.usd_per_hour_amount if newest else None,
        price_source=newest.price_source if newest else "",
        is_sealed=all(row.is_sealed for row in rows),
    )


def _measured(
    workload_ids: Iterable[int], start: datetime, end: datetime, step: Step
) -> dict[datetime, dict[int, Measured]]:
    at = TruncDay("start") if step is Step.DAY else F("start")
    rows = (
        WorkloadHour.objects.filter(
            workload_id__in=list(workload_ids),
            start__gte=start,
            start__lt=end,
            observed_ms__gt=0,
        )
        .annotate(at=at)
        .values_list("at", "workload_id")
        .annotate(Sum("gpu_busy_ms"), Sum("observed_ms"), Max("gpu_busy_source"))
        .order_by()
    )
    known: dict[datetime, dict[int, Measured]] = defaultdict(dict)
    for when, workload, busy, observed, source in rows:
        known[when][workload] = Measured(busy, observed, source_label(source))
    return known


def _step_of(at: datetime, step: Step) -> datetime:
    hour = hour_of(at)
    return hour.replace(hour=0) if step is Step.DAY else hour


def _steps(start: datetime, end: datetime, step: Step) -> list[datetime]:
    length = _DAY if step is Step.DAY else HOUR
    first = _step_of(start.astimezone(UTC), step)
    return [first + number * length for number in range(max(0, -(-(end - first) // length)))]
