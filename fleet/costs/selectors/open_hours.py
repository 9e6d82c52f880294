"""The estimate of hours that are not sealed yet: computed now, or kept for clusters with many nodes.

A kept estimate is as of at most a few minutes ago (fleet.costs.services.open_hours).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import BigIntegerField, QuerySet, Sum
from django.db.models.functions import Cast

from fleet.costs.domain.results import GroupBy, GroupKey, LedgerEntry
from fleet.costs.selectors import metering, usage
from fleet.costs.selectors.sealed import Scope
from fleet.models import LedgerKind, OpenHour, OpenHourSum
from portal.core import clock

_FRESH = timedelta(minutes=5)


def list_kept() -> list[OpenHour]:
    """Return the hours of large clusters whose estimate is fresh."""
    fresh = OpenHour.objects.filter(computed_at__gt=clock.now() - _FRESH)
    deferred = [f"cluster__{name}" for name in metering.LARGE_OF_CLUSTERS]
    return list(fresh.select_related("cluster").defer(*deferred))


@dataclass(slots=True)
class OpenSum:
    """The cost of a group so far in an hour that is not sealed. Unpriced GPU time costs 0."""

    hour: datetime
    key: GroupKey
    amount: Decimal
    gpu_ms: int
    is_priced: bool


@dataclass(frozen=True, slots=True)
class OpenHoursEstimate:
    """A group may come several times. `unpriced` maps a node's id to its hours without a price."""

    sums: Sequence[OpenSum]
    unpriced: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Unsealed:
    """The unsealed hours of a period, read once for all sums of a page: what is kept of large clusters,
    and the holders on nodes of the others.
    """

    kept: Sequence[OpenHour]
    entries: Sequence[LedgerEntry]
    unpriced: Mapping[int, int]


def read(team_slugs: Collection[str] | None, start: datetime, end: datetime) -> Unsealed:
    """Read the hours that are not sealed yet. With teams, nodes of others are limited to those on which these teams
    held GPUs, with all of the holders there.
    """
    fresh = list_kept()
    kept = [hour for hour in fresh if start <= hour.hour < end]
    live = metering.estimate(
        start=start,
        end=end,
        now=clock.now(),
        without_clusters={hour.cluster_id for hour in fresh},
        team_slugs=team_slugs,
    )
    unpriced = Counter(live.unpriced)
    for hour in kept:
        unpriced.update(hour.unpriced_nodes)
    return Unsealed(kept, live.entries, unpriced)


def estimate(
    scope: Scope, start: datetime, end: datetime, group_by: GroupBy | None
) -> OpenHoursEstimate:
    """Sum the estimated costs by group. `group_by` None means one sum of all that is not idle."""
    unsealed = read(scope.team_slugs, start, end)
    return OpenHoursEstimate(sums(unsealed, scope, group_by), unsealed.unpriced)


def sums(unsealed: Unsealed, scope: Scope, group_by: GroupBy | None) -> list[OpenSum]:
    """Return the sums by group. A group may come several times."""
    live = [_sum_of(entry, group_by) for entry in entries_in(unsealed, scope)]
    return [*live, *_kept_sums(unsealed, scope, group_by)]


def entries_in(unsealed: Unsealed, scope: Scope) -> list[LedgerEntry]:
    return [entry for entry in unsealed.entries if _is_in(entry, scope)]


def filter_kept_rows(unsealed: Unsealed, scope: Scope) -> QuerySet[OpenHourSum]:
    rows = OpenHourSum.objects.filter(open_hour__in=[hour.pk for hour in unsealed.kept])
    if scope.team_slugs is not None:
        rows = rows.filter(team_slug__in=scope.team_slugs, is_idle=False)
    if scope.models:
        rows = rows.filter(model__in=scope.models)
    if scope.deployments:
        rows = rows.filter(deployment__in=scope.deployments)
    return rows


def list_group_values(entry: LedgerEntry, group_by: GroupBy | None) -> list[Any]:
    """Return the columns of the entry's group, as of a grouping in SQL."""
    if group_by is None:
        return []
    if group_by is GroupBy.CLUSTER:
        return [entry.cluster_name]
    return [entry.team_slug, *map(entry.labels.get, usage.grouping_labels(group_by))]


def _sum_of(entry: LedgerEntry, group_by: GroupBy | None) -> OpenSum:
    is_idle = entry.kind == LedgerKind.IDLE
    key = usage.build_key(group_by, list_group_values(entry, group_by), is_idle=is_idle)
    return OpenSum(entry.hour, key, entry.cost_amount, entry.gpu_milliseconds, entry.is_priced)


def _is_in(entry: LedgerEntry, scope: Scope) -> bool:
    if scope.team_slugs is not None and (
        entry.kind == LedgerKind.IDLE or entry.team_slug not in scope.team_slugs
    ):
        return False
    return (not scope.models or entry.labels.get("model") in scope.models) and (
        not scope.deployments or entry.labels.get("deployment") in scope.deployments
    )


def _kept_sums(unsealed: Unsealed, scope: Scope, group_by: GroupBy | None) -> Iterator[OpenSum]:
    if not unsealed.kept:
        return
    hours = {hour.pk: hour for hour in unsealed.kept}
    cost, ms = (Cast(Sum(n), BigIntegerField()) for n in ("cost_micros", "gpu_milliseconds"))
    names: tuple[str, ...] = ()
    if group_by not in (None, GroupBy.CLUSTER):
        names = ("team_slug", *usage.grouping_labels(group_by))
    columns = filter_kept_rows(unsealed, scope).values_list(
        "open_hour", "is_idle", "is_priced", *names
    )
    for pk, is_idle, is_priced, *group, cost_micros, gpu_ms in columns.annotate(
        cost=cost, ms=ms
    ).order_by():
        values = group or [hours[pk].cluster.name]
        key = usage.build_key(group_by, values, is_idle=is_idle)
        amount = Decimal(cost_micros).scaleb(-6)
        yield OpenSum(hours[pk].hour, key, amount, gpu_ms, is_priced)
