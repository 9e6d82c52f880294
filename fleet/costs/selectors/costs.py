"""Costs: sealed ledger rows, plus an estimate of the hours that are not sealed yet.

`team_slugs` None means the whole fleet, including unattributed pods and idle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from heapq import nlargest

from django.db.models import Max, Sum
from django.db.models.fields.json import KT

from fleet.costs.domain.results import (
    ZERO,
    CostRow,
    CostTable,
    GroupBy,
    GroupKey,
    Spend,
)
from fleet.costs.selectors import open_hours, sealed, unpriced, usage
from fleet.costs.selectors.open_hours import Estimate, OpenSum
from fleet.costs.selectors.sealed import Scope, SealedSum
from fleet.gpus.domain.intervals import HOUR, HOUR_MS
from fleet.gpus.domain.shares import GPU_PPM
from fleet.models import GpuLease, LedgerKind, SealedHour, UnpricedHour
from portal.core import clock
from portal.core.money import MICRO

Teams = Collection[str] | None


def month_to_date(*, team_slug: str | None) -> Spend:
    """This calendar month, UTC."""
    now = clock.now()
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return spend(team_slugs=None if team_slug is None else [team_slug], start=start, end=now)


def spend(*, team_slugs: Teams, start: datetime, end: datetime) -> Spend:
    """Costs of the hours that start in [start, end)."""
    estimate = open_hours.estimate(Scope(team_slugs), start, end, GroupBy.TEAM)
    rows = sealed.sums(Scope(team_slugs), start, end, GroupBy.TEAM)
    return _spend(team_slugs, start, end, list(rows), estimate)


def gpus_in_use(*, team_slug: str) -> Decimal:
    """The sum of the GPU shares that the team's pods hold now."""
    return gpus_in_use_by_team(team_slugs=[team_slug]).get(team_slug, ZERO)


def gpus_in_use_by_team(*, team_slugs: Collection[str]) -> dict[str, Decimal]:
    """Of the teams that hold any."""
    leases = GpuLease.objects.filter(team_slug__in=team_slugs, ended_at=None)
    held = leases.values_list("team_slug").annotate(Sum("share_ppm")).order_by()
    return {slug: Decimal(share_ppm) / GPU_PPM for slug, share_ppm in held}


def table(
    *,
    team_slugs: Teams,
    start: datetime,
    end: datetime,
    group_by: GroupBy = GroupBy.TEAM,
    deployment: str = "",
    limit: int | None = None,
    offset: int = 0,
) -> CostTable:
    """One row for each group, with the change from the previous period of equal length. With a limit:
    so many of the most expensive ones after `offset`. A deployment's name limits all of it to that one.
    """
    scope = Scope(team_slugs, deployments=[deployment] if deployment else ())
    estimate = open_hours.estimate(scope, start, end, group_by)
    rows = list(sealed.sums(scope, start, end, group_by))
    totals = _totals(rows)
    _add_estimate(totals, estimate.sums)
    _add_unpriced(totals, scope, start, end, group_by)
    held = [key for key in totals if not key.is_idle]
    shown = _most_expensive(totals, held, None if limit is None else offset + limit)[offset:]
    idle_keys = [key for key in totals if key.is_idle]
    previous = _previous(scope, start, end, group_by, shown if len(shown) < len(held) else None)
    used = usage.by_group(
        start=start,
        end=end,
        group_by=group_by,
        team_slugs=team_slugs,
        keys=shown if len(shown) < len(held) or deployment else None,
    )
    costs = [_row(key, totals[key], previous.amounts, used) for key in shown]
    idle = [_row(key, totals[key], previous.amounts, {}) for key in idle_keys]
    return CostTable(
        start=start,
        end=end,
        rows=tuple(costs),
        idle=_merged(idle) if idle else None,
        total_amount=sum((total.amount for total in totals.values()), ZERO),
        others_amount=sum((totals[key].amount for key in held), ZERO)
        - sum((row.amount for row in costs), ZERO),
        row_count=len(held),
        offset=offset,
        is_unpriced=bool(totals) and all(total.is_unpriced for total in totals.values()),
        previous_total_amount=previous.total or None,
        spend=_spend(team_slugs, start, end, rows, estimate),
    )


def _most_expensive(
    totals: Mapping[GroupKey, _Total], keys: Collection[GroupKey], count: int | None
) -> list[GroupKey]:
    """Equal amounts by name. Only names of groups that may be among them are made."""
    amounts = {key: totals[key].amount for key in keys}
    if count and count < len(amounts):
        least = nlargest(count, amounts.values())[-1]
        amounts = {key: amount for key, amount in amounts.items() if amount >= least}
    return sorted(amounts, key=lambda key: (-amounts[key], key.label))[:count]


@dataclass(slots=True)
class _Total:
    allocated: Decimal = ZERO
    estimated: Decimal = ZERO
    gpu_ms: int = 0
    unpriced_gpu_ms: int = 0

    @property
    def amount(self) -> Decimal:
        return self.allocated + self.estimated

    @property
    def is_unpriced(self) -> bool:
        return self.amount == 0 and 0 < self.gpu_ms <= self.unpriced_gpu_ms


@dataclass(frozen=True, slots=True)
class _Previous:
    amounts: Mapping[GroupKey, Decimal]
    total: Decimal


def _previous(
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy,
    keys: Sequence[GroupKey] | None,
) -> _Previous:
    """Of the period before. With keys: the amounts of these groups (and others of their teams) only."""
    before = start - (end - start)
    if keys is None or group_by in (GroupBy.TEAM, GroupBy.CLUSTER):
        amounts = _amounts(sealed.sums(scope, before, start, group_by))
        return _Previous(amounts, sum(amounts.values(), ZERO))
    coarse = _amounts(sealed.sums(scope, before, start, GroupBy.TEAM))
    amounts = dict(_amounts(sealed.sums(narrow(scope, keys), before, start, group_by)))
    amounts |= {key: amount for key, amount in coarse.items() if key.is_idle}
    return _Previous(amounts, sum(coarse.values(), ZERO))


def narrow(scope: Scope, keys: Collection[GroupKey]) -> Scope:
    """A scope that has all of these groups, and few others."""
    slugs = {key.team_slug for key in keys}
    names = frozenset(key.deployment for key in keys) - {""}
    models = frozenset(key.model for key in keys) - {""}
    has_deployments = all(key.deployment for key in keys)
    has_models = all(key.model for key in keys)
    return Scope(
        sorted(slugs),
        models=sorted(models) if has_models else scope.models,
        deployments=sorted(names) if has_deployments else scope.deployments,
    )


def _amounts(sums: Iterable[SealedSum]) -> dict[GroupKey, Decimal]:
    amounts: dict[GroupKey, Decimal] = defaultdict(Decimal)
    for one in sums:
        amounts[one.key] += one.amount
    return amounts


def _totals(sums: Iterable[SealedSum]) -> dict[GroupKey, _Total]:
    totals: dict[GroupKey, _Total] = defaultdict(_Total)
    for one in sums:
        total = totals[one.key]
        total.allocated += one.amount
        total.gpu_ms += one.gpu_ms
    return totals


def _spend(
    team_slugs: Teams,
    start: datetime,
    end: datetime,
    sums: Sequence[SealedSum],
    estimate: Estimate,
) -> Spend:
    held = [one for one in sums if not one.key.is_idle]
    allocated = [one for one in estimate.sums if not one.key.is_idle]
    idle = [one.amount for one in estimate.sums if one.key.is_idle]
    gpu_ms = sum(one.gpu_ms for one in held) + sum(one.gpu_ms for one in allocated)
    return Spend(
        allocated_amount=sum((one.amount for one in held), ZERO),
        estimated_amount=sum((one.amount for one in allocated), ZERO),
        idle_amount=sum((one.amount for one in sums if one.key.is_idle), ZERO) + sum(idle, ZERO),
        gpu_hours=_hours(gpu_ms),
        sealed_to=_sealed_to(),
        has_demo_data=any(one.is_demo for one in sums),
        unpriced=unpriced.list_nodes(
            team_slugs=team_slugs, start=start, end=end, running=estimate.unpriced
        ),
    )


def _sealed_to() -> datetime | None:
    """The time up to which all clusters with sealed hours are sealed."""
    last = SealedHour.objects.values("cluster").annotate(last=Max("hour")).order_by()
    return min((row["last"] + HOUR for row in last), default=None)


def _add_estimate(totals: dict[GroupKey, _Total], sums: Iterable[OpenSum]) -> None:
    for one in sums:
        total = totals[one.key]
        total.estimated += one.amount
        total.gpu_ms += one.gpu_ms
        if not one.is_priced:
            total.unpriced_gpu_ms += one.gpu_ms


def _add_unpriced(
    totals: dict[GroupKey, _Total],
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy,
) -> None:
    if not UnpricedHour.objects.filter(hour__gte=start, hour__lt=end).exists():
        return
    rows = unpriced.rows_of(sealed.rows_in(scope, start, end))
    names = usage.grouping_labels(group_by)
    fields = ("cluster_name",) if group_by is GroupBy.CLUSTER else ("team_slug", *names)
    grouped = rows.annotate(**{name: KT(f"workload_labels__{name}") for name in names})
    for row in grouped.values("kind", "namespace", *fields).annotate(ms=Sum("gpu_milliseconds")):
        is_idle = row["kind"] == LedgerKind.IDLE or (
            row["kind"] == LedgerKind.ADJUSTMENT and not row["namespace"]
        )
        key = usage.key_for(
            group_by,
            team_slug=row.get("team_slug", ""),
            labels=row,
            cluster_name=row.get("cluster_name", ""),
            is_idle=is_idle,
        )
        totals[key].unpriced_gpu_ms += row["ms"]


def _row(
    key: GroupKey,
    total: _Total,
    previous: Mapping[GroupKey, Decimal],
    usage_by_key: Mapping[GroupKey, usage.GroupUsage],
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
        previous_amount=previous.get(key),
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


def _hours(gpu_ms: int) -> Decimal:
    return (Decimal(gpu_ms) / HOUR_MS).quantize(MICRO)
