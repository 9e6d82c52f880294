"""Costs: sealed ledger rows, plus an estimate of the hours that are not sealed yet.

`team_slugs` None means the whole fleet, including unattributed pods and idle.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal

from django.db.models import Max, Sum

from fleet.costs.domain import idle as idle_shares
from fleet.costs.domain.results import (
    ZERO,
    CostRow,
    CostTable,
    GroupBy,
    GroupKey,
    IdleRule,
    MonthSpend,
    Spend,
)
from fleet.costs.selectors import open_hours, ranking, sealed, unpriced, usage
from fleet.costs.selectors.open_hours import Unsealed
from fleet.costs.selectors.ranking import GroupTotal, Ranking
from fleet.costs.selectors.sealed import Scope, SealedSum
from fleet.gpus.domain.intervals import HOUR, HOUR_MS, whole_hours
from fleet.gpus.domain.shares import GPU_PPM
from fleet.models import GpuLease, SealedHour
from portal.core import clock
from portal.core.money import MICRO

Teams = Collection[str] | None


def sum_spend_this_month(*, team_slug: str) -> MonthSpend:
    """Return the spend of this calendar month, UTC, up to now. It takes three queries, because pages that show much
    else show it.
    """
    now = clock.now()
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    scope = Scope([team_slug])
    unsealed = open_hours.read(scope.team_slugs, start, now)
    whole = ranking.rank(scope, start, now, None, unsealed, limit=0)
    return MonthSpend(whole.held.allocated, whole.held.estimated, whole.has_demo_data)


def gpus_in_use(*, team_slug: str) -> Decimal:
    """Return the sum of the GPU shares that the team's pods hold now."""
    return gpus_in_use_by_team(team_slugs=[team_slug]).get(team_slug, ZERO)


def gpus_in_use_by_team(*, team_slugs: Collection[str]) -> dict[str, Decimal]:
    """Return the GPUs in use by team slug, limited to teams that hold any."""
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
    unsealed: Unsealed | None = None,
    idle_rule: IdleRule = IdleRule.SEPARATE,
) -> CostTable:
    """Return one row for each group, with the change from the previous period of equal length; the table states the
    hours that it sums. With a limit, return that many of the most expensive groups after `offset`. A
    deployment's name limits all of it to that one. Idle stays separate between clusters, each of which has its
    own, and where nothing was held.
    """
    start, end = whole_hours(start, end)
    scope = Scope(team_slugs, deployments=[deployment] if deployment else ())
    unsealed = unsealed or open_hours.read(team_slugs, start, end)
    whole = ranking.rank(scope, start, end, group_by, unsealed, limit=limit, offset=offset)
    keys = [total.key for total in whole.page]
    is_part = len(keys) < whole.held_count
    previous = _previous(scope, start, end, group_by, keys if is_part else None)
    narrow_to = keys if is_part or deployment else None
    used = usage.by_group(
        start=start, end=end, group_by=group_by, team_slugs=team_slugs, keys=narrow_to
    )
    rule = _rule(idle_rule, whole, group_by)
    parts = _idle_parts(whole, rule)
    rows = _rows(whole.page, previous, used, parts)
    idle = _rows(whole.idle, previous, {}, [ZERO] * len(whole.idle))
    idle_amount = sum((row.amount for row in idle), ZERO)
    return CostTable(
        start=start,
        end=end,
        rows=tuple(rows),
        idle=_merged(idle) if idle and rule is IdleRule.SEPARATE else None,
        total_amount=whole.held.amount + (ZERO if rule is IdleRule.HIDDEN else idle_amount),
        others_amount=whole.held.amount - sum((row.amount for row in rows), ZERO),
        row_count=whole.held_count,
        offset=offset,
        is_unpriced=whole.is_unpriced,
        previous_total_amount=previous.total_by(rule) or None,
        spend=_spend(team_slugs, start, end, whole, unsealed),
        idle_rule=rule,
        others_idle_amount=idle_amount - sum(parts, ZERO) if rule.is_shared else ZERO,
    )


def _rule(rule: IdleRule, whole: Ranking, group_by: GroupBy) -> IdleRule:
    is_possible = group_by is not GroupBy.CLUSTER and whole.held.weight(rule) > 0
    return IdleRule.SEPARATE if rule.is_shared and not is_possible else rule


def _idle_parts(whole: Ranking, rule: IdleRule) -> list[Decimal]:
    """Return each row's part of the idle cost, in the order of the page."""
    if not rule.is_shared:
        return [ZERO] * len(whole.page)
    amount = sum((total.amount for total in whole.idle), ZERO)
    parts = idle_shares.share(
        int(amount / MICRO),
        [total.weight(rule) for total in whole.page],
        before=whole.before.weight(rule),
        whole=whole.held.weight(rule),
    )
    return [Decimal(part).scaleb(-6) for part in parts]


@dataclass(frozen=True, slots=True)
class _Previous:
    amounts: Mapping[GroupKey, Decimal]
    total: Decimal

    def total_by(self, rule: IdleRule) -> Decimal:
        if rule is not IdleRule.HIDDEN:
            return self.total
        return self.total - sum((a for key, a in self.amounts.items() if key.is_idle), ZERO)


def _previous(
    scope: Scope,
    start: datetime,
    end: datetime,
    group_by: GroupBy,
    keys: Sequence[GroupKey] | None,
) -> _Previous:
    """Return the costs of the period before. With `keys`, only the amounts of these groups (and others of their
    teams).
    """
    before = start - (end - start)
    if keys is None or group_by in (GroupBy.TEAM, GroupBy.CLUSTER):
        amounts = _amounts(sealed.sums(scope, before, start, group_by))
        return _Previous(amounts, sum(amounts.values(), ZERO))
    coarse = _amounts(sealed.sums(scope, before, start, GroupBy.TEAM))
    amounts = dict(_amounts(sealed.sums(narrow(scope, keys), before, start, group_by)))
    amounts |= {key: amount for key, amount in coarse.items() if key.is_idle}
    return _Previous(amounts, sum(coarse.values(), ZERO))


def narrow(scope: Scope, keys: Collection[GroupKey]) -> Scope:
    """Return a scope that has all of these groups, and few others."""
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
    """Sum the amounts by group, without groups that have neither a cost nor GPU time."""
    amounts: dict[GroupKey, Decimal] = defaultdict(Decimal)
    times: dict[GroupKey, int] = defaultdict(int)
    for one in sums:
        amounts[one.key] += one.amount
        times[one.key] += one.gpu_ms
    return {key: amount for key, amount in amounts.items() if amount or times[key]}


def _spend(
    team_slugs: Teams, start: datetime, end: datetime, whole: Ranking, unsealed: Unsealed
) -> Spend:
    return Spend(
        allocated_amount=whole.held.allocated,
        estimated_amount=whole.held.estimated,
        idle_amount=sum((total.amount for total in whole.idle), ZERO),
        gpu_hours=_hours(whole.held.gpu_ms),
        sealed_to=_sealed_to(),
        has_demo_data=whole.has_demo_data,
        unpriced=unpriced.list_nodes(
            team_slugs=team_slugs, start=start, end=end, running=unsealed.unpriced
        ),
    )


def _sealed_to() -> datetime | None:
    """Return the time up to which all clusters with sealed hours are sealed."""
    last = SealedHour.objects.values("cluster").annotate(last=Max("hour")).order_by()
    return min((row["last"] + HOUR for row in last), default=None)


def _rows(
    totals: Sequence[GroupTotal],
    previous: _Previous,
    usage_by_key: Mapping[GroupKey, usage.GroupUsage],
    idle_amounts: Sequence[Decimal],
) -> list[CostRow]:
    """Return the rows of the page. `idle_amounts` are their parts of the idle cost."""
    pairs = zip(totals, idle_amounts, strict=True)
    return [_row(total, previous.amounts, usage_by_key, amount) for total, amount in pairs]


def _row(
    total: GroupTotal,
    previous: Mapping[GroupKey, Decimal],
    usage_by_key: Mapping[GroupKey, usage.GroupUsage],
    idle_amount: Decimal = ZERO,
) -> CostRow:
    group_usage = None if total.key.is_idle else usage_by_key.get(total.key)
    return CostRow(
        key=total.key,
        allocated_amount=total.allocated,
        estimated_amount=total.estimated,
        gpu_hours=_hours(total.gpu_ms),
        unpriced_gpu_hours=_hours(total.unpriced_ms),
        utilisation=group_usage.utilisation if group_usage else None,
        utilisation_source=group_usage.source if group_usage else "",
        inferences=group_usage.inferences if group_usage else None,
        tokens=(group_usage.tokens or None) if group_usage else None,
        previous_amount=previous.get(total.key),
        idle_amount=idle_amount,
        energy_mj=group_usage.energy_mj if group_usage else None,
        energy_ms=group_usage.energy_ms if group_usage else 0,
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
