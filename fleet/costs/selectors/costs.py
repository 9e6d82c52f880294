"""Costs: sealed ledger rows, plus an estimate of the hours that are not sealed yet.

`team_slugs` None means the whole fleet, including unattributed pods and idle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.db.models import Max, Q, QuerySet, Sum
from django.db.models.fields.json import KT
from django.db.models.functions import Coalesce, TruncDay, TruncHour

from fleet.costs.domain.results import (
    ZERO,
    CostPoint,
    CostRow,
    CostTable,
    GroupBy,
    GroupKey,
    LedgerEntry,
    Spend,
    Step,
)
from fleet.costs.selectors import metering, unpriced, usage
from fleet.costs.selectors.ledger_rows import IDLE
from fleet.costs.selectors.metering import Estimate
from fleet.gpus.domain.intervals import HOUR, HOUR_MS
from fleet.gpus.domain.shares import GPU_PPM
from fleet.models import GpuLease, LedgerKind, LedgerRow, SealedHour
from portal.core import clock
from portal.core.money import MICRO

Teams = Collection[str] | None
# Idle, or an adjustment of idle: rows without a namespace.


def month_to_date(*, team_slug: str | None) -> Spend:
    """This calendar month, UTC."""
    now = clock.now()
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return spend(team_slugs=None if team_slug is None else [team_slug], start=start, end=now)


def spend(*, team_slugs: Teams, start: datetime, end: datetime) -> Spend:
    """Costs of the hours that start in [start, end)."""
    return _spend(team_slugs, start, end, _estimate(team_slugs, start, end))


def gpus_in_use(*, team_slug: str) -> Decimal:
    """The sum of the GPU shares that the team's pods hold now."""
    leases = GpuLease.objects.filter(team_slug=team_slug, ended_at=None)
    return Decimal(leases.aggregate(total=Sum("share_ppm"))["total"] or 0) / GPU_PPM


def table(
    *, team_slugs: Teams, start: datetime, end: datetime, group_by: GroupBy = GroupBy.TEAM
) -> CostTable:
    """One row for each group, with the change from the previous period of equal length."""
    estimate = _estimate(team_slugs, start, end)
    sums = _sums(team_slugs, start, end, group_by)
    _add_estimate(sums, estimate.entries, group_by)
    _add_unpriced(sums, unpriced.rows_of(sealed_rows(team_slugs, start, end)), group_by)
    previous = _sums(team_slugs, start - (end - start), start, group_by)
    usage_by_key = usage.by_group(start=start, end=end, group_by=group_by, team_slugs=team_slugs)
    rows = [_row(key, total, previous, usage_by_key) for key, total in sums.items()]
    rows.sort(key=lambda row: (-row.amount, row.key.label))
    idle = [row for row in rows if row.key.is_idle]
    return CostTable(
        start=start,
        end=end,
        rows=tuple(row for row in rows if not row.key.is_idle),
        idle=_merged(idle) if idle else None,
        total_amount=sum((row.amount for row in rows), ZERO),
        previous_total_amount=sum((total.amount for total in previous.values()), ZERO) or None,
        spend=_spend(team_slugs, start, end, estimate),
    )


def series(
    *,
    team_slugs: Teams,
    start: datetime,
    end: datetime,
    group_by: GroupBy = GroupBy.TEAM,
    step: Step = Step.DAY,
) -> list[CostPoint]:
    """Points ordered by time, then group. A group without cost at a time has no point."""
    truncate = TruncDay if step is Step.DAY else TruncHour
    rows = (
        sealed_rows(team_slugs, start, end)
        .annotate(at=truncate("hour"), **_labels(group_by))
        .values("at", "kind", "namespace", *_fields(group_by))
        .annotate(amount=Sum("cost_amount"))
        .order_by()
    )
    amounts: dict[tuple[datetime, GroupKey, bool], Decimal] = defaultdict(Decimal)
    for row in rows:
        amounts[row["at"], _key_of_row(row, group_by), False] += _exact(row["amount"])
    for entry in _estimate(team_slugs, start, end).entries:
        at = entry.hour.replace(hour=0) if step is Step.DAY else entry.hour
        amounts[at, _key_of(entry, group_by), True] += entry.cost_amount
    points = [CostPoint(at, key, amount, est) for (at, key, est), amount in amounts.items()]
    return sorted(points, key=lambda p: (p.at, p.key.is_idle, p.key.label, p.is_estimated))


def sealed_rows(team_slugs: Teams, start: datetime, end: datetime) -> QuerySet[LedgerRow]:
    rows = LedgerRow.objects.filter(hour__gte=start, hour__lt=end)
    return rows if team_slugs is None else rows.filter(team_slug__in=team_slugs).exclude(IDLE)


def estimated_entries(team_slugs: Teams, start: datetime, end: datetime) -> tuple[LedgerEntry, ...]:
    return _estimate(team_slugs, start, end).entries


@dataclass(slots=True)
class _Sum:
    allocated: Decimal = ZERO
    estimated: Decimal = ZERO
    gpu_ms: int = 0
    unpriced_gpu_ms: int = 0

    @property
    def amount(self) -> Decimal:
        return self.allocated + self.estimated


def _estimate(team_slugs: Teams, start: datetime, end: datetime) -> Estimate:
    estimate = metering.estimate(start=start, end=end, now=clock.now())
    if team_slugs is None:
        return estimate
    own = [e for e in estimate.entries if e.team_slug in team_slugs and e.kind != LedgerKind.IDLE]
    return Estimate(tuple(own), estimate.unpriced)


def _spend(team_slugs: Teams, start: datetime, end: datetime, estimate: Estimate) -> Spend:
    sealed = sealed_rows(team_slugs, start, end).aggregate(
        allocated=Coalesce(Sum("cost_amount", filter=~IDLE), ZERO),
        idle=Coalesce(Sum("cost_amount", filter=IDLE), ZERO),
        gpu_ms=Coalesce(Sum("gpu_milliseconds", filter=~IDLE), 0),
        demo=Max("hour", filter=Q(is_demo=True)),
    )
    allocated = [entry for entry in estimate.entries if entry.kind != LedgerKind.IDLE]
    idle = [entry for entry in estimate.entries if entry.kind == LedgerKind.IDLE]
    return Spend(
        allocated_amount=_exact(sealed["allocated"]),
        estimated_amount=sum((entry.cost_amount for entry in allocated), ZERO),
        idle_amount=_exact(sealed["idle"]) + sum((entry.cost_amount for entry in idle), ZERO),
        gpu_hours=_hours(sealed["gpu_ms"] + sum(entry.gpu_milliseconds for entry in allocated)),
        sealed_to=_sealed_to(),
        has_demo_data=sealed["demo"] is not None,
        unpriced=unpriced.list_nodes(
            team_slugs=team_slugs, start=start, end=end, running=estimate.unpriced
        ),
    )


def _sealed_to() -> datetime | None:
    """The time up to which all clusters with sealed hours are sealed."""
    last = SealedHour.objects.values("cluster").annotate(last=Max("hour")).order_by()
    return min((row["last"] + HOUR for row in last), default=None)


def _sums(
    team_slugs: Teams, start: datetime, end: datetime, group_by: GroupBy
) -> dict[GroupKey, _Sum]:
    sums: dict[GroupKey, _Sum] = defaultdict(_Sum)
    for row in _grouped(sealed_rows(team_slugs, start, end), group_by):
        total = sums[_key_of_row(row, group_by)]
        total.allocated += _exact(row["amount"])
        total.gpu_ms += row["gpu_ms"]
    return sums


def _grouped(rows: QuerySet[LedgerRow], group_by: GroupBy) -> Iterable[dict[str, Any]]:
    grouped = rows.annotate(**_labels(group_by)).values("kind", "namespace", *_fields(group_by))
    sums: Iterable[dict[str, Any]] = grouped.annotate(
        amount=Sum("cost_amount"), gpu_ms=Sum("gpu_milliseconds")
    ).order_by()
    return sums


def _add_estimate(
    sums: dict[GroupKey, _Sum], entries: Iterable[LedgerEntry], group_by: GroupBy
) -> None:
    for entry in entries:
        total = sums[_key_of(entry, group_by)]
        total.estimated += entry.cost_amount
        total.gpu_ms += entry.gpu_milliseconds
        if not entry.is_priced:
            total.unpriced_gpu_ms += entry.gpu_milliseconds


def _add_unpriced(sums: dict[GroupKey, _Sum], rows: QuerySet[LedgerRow], group_by: GroupBy) -> None:
    for row in _grouped(rows, group_by):
        sums[_key_of_row(row, group_by)].unpriced_gpu_ms += row["gpu_ms"]


def _row(
    key: GroupKey,
    total: _Sum,
    previous: dict[GroupKey, _Sum],
    usage_by_key: dict[GroupKey, usage.GroupUsage],
) -> CostRow:
    group_usage = None if key.is_idle else usage_by_key.get(key)
    return CostRow(
        key=key,
        allocated_amount=total.allocated,
        estimated_amount=total.estimated,
        gpu_hours=_hours(total.gpu_ms),
        unpriced_gpu_hours=_hours(total.unpriced_gpu_ms),
        utilisation=group_usage.utilisation if group_usage else None,
        utilisation_source=group_usage.source if group_usage else "",
        inferences=group_usage.inferences if group_usage else None,
        tokens=(group_usage.tokens or None) if group_usage else None,
        previous_amount=previous[key].amount if key in previous else None,
    )


def _merged(idle: list[CostRow]) -> CostRow:
    previous = [row.previous_amount for row in idle if row.previous_amount is not None]
    return CostRow(
        key=GroupKey(is_idle=True),
        allocated_amount=sum((row.allocated_amount for row in idle), ZERO),
        estimated_amount=sum((row.estimated_amount for row in idle), ZERO),
        gpu_hours=sum((row.gpu_hours for row in idle), ZERO),
        unpriced_gpu_hours=sum((row.unpriced_gpu_hours for row in idle), ZERO),
        previous_amount=sum(previous, ZERO) if previous else None,
    )


def _exact(summed: Decimal) -> Decimal:
    """Round a sum to micro-dollars: SQLite adds decimals as floating point."""
    return summed.quantize(MICRO)


def _hours(gpu_ms: int) -> Decimal:
    return (Decimal(gpu_ms) / HOUR_MS).quantize(MICRO)


def _fields(group_by: GroupBy) -> tuple[str, ...]:
    return ("cluster_name",) if group_by is GroupBy.CLUSTER else ("team_slug", *_labels(group_by))


def _labels(group_by: GroupBy) -> dict[str, Any]:
    """The grouping labels as query columns."""
    return {name: KT(f"workload_labels__{name}") for name in usage.grouping_labels(group_by)}


def _key_of_row(row: dict[str, Any], group_by: GroupBy) -> GroupKey:
    is_idle = row["kind"] == LedgerKind.IDLE or (
        row["kind"] == LedgerKind.ADJUSTMENT and not row["namespace"]
    )
    return usage.key_for(
        group_by,
        team_slug=row.get("team_slug", ""),
        labels=row,
        cluster_name=row.get("cluster_name", ""),
        is_idle=is_idle,
    )


def _key_of(entry: LedgerEntry, group_by: GroupBy) -> GroupKey:
    return usage.key_for(
        group_by,
        team_slug=entry.team_slug,
        labels=entry.labels,
        cluster_name=entry.cluster_name,
        is_idle=entry.kind == LedgerKind.IDLE,
    )
