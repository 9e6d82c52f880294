"""The estimate of hours that are not sealed yet: computed now, or kept for clusters with many nodes.

A kept estimate is as of at most a few minutes ago (fleet.costs.services.open_hours).
"""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Sum

from fleet.costs.domain.results import GroupBy, GroupKey, LedgerEntry
from fleet.costs.selectors import metering, usage
from fleet.costs.selectors.metering import Estimate
from fleet.costs.selectors.sealed import Scope
from fleet.models import LedgerKind, OpenHour, OpenHourSum
from portal.core import clock
from portal.core.money import MICRO

_FRESH = timedelta(minutes=5)


def estimate(scope: Scope, start: datetime, end: datetime, group_by: GroupBy) -> Estimate:
    """Kept estimates come as one entry for each group of `group_by`."""
    now = clock.now()
    fresh = list(OpenHour.objects.filter(computed_at__gt=now - _FRESH).select_related("cluster"))
    clusters = {hour.cluster_id for hour in fresh}
    kept = [hour for hour in fresh if start <= hour.hour < end]
    live = metering.estimate(
        start=start,
        end=end,
        now=now,
        without_clusters=clusters,
        team_slugs=scope.team_slugs,
    )
    unpriced = Counter(live.unpriced)
    for hour in kept:
        unpriced.update(hour.unpriced_nodes)
    entries = [entry for entry in live.entries if _is_in(entry, scope)]
    if kept:
        entries += _kept_entries(scope, kept, group_by)
    return Estimate(tuple(entries), unpriced)


def entries(scope: Scope, start: datetime, end: datetime) -> list[LedgerEntry]:
    """Of each holder and node, computed now."""
    live = metering.estimate(start=start, end=end, now=clock.now(), team_slugs=scope.team_slugs)
    return [entry for entry in live.entries if _is_in(entry, scope)]


def key_of(entry: LedgerEntry, group_by: GroupBy) -> GroupKey:
    return usage.key_for(
        group_by,
        team_slug=entry.team_slug,
        labels=entry.labels,
        cluster_name=entry.cluster_name,
        is_idle=entry.kind == LedgerKind.IDLE,
    )


def _is_in(entry: LedgerEntry, scope: Scope) -> bool:
    if scope.team_slugs is not None and (
        entry.kind == LedgerKind.IDLE or entry.team_slug not in scope.team_slugs
    ):
        return False
    return (not scope.models or entry.labels.get("model") in scope.models) and (
        not scope.deployments or entry.labels.get("deployment") in scope.deployments
    )


def _kept_entries(scope: Scope, kept: list[OpenHour], group_by: GroupBy) -> list[LedgerEntry]:
    hours = {hour.pk: hour for hour in kept}
    rows = OpenHourSum.objects.filter(open_hour__in=hours)
    if scope.team_slugs is not None:
        rows = rows.filter(team_slug__in=scope.team_slugs, is_idle=False)
    if scope.models:
        rows = rows.filter(model__in=scope.models)
    if scope.deployments:
        rows = rows.filter(deployment__in=scope.deployments)
    labels = usage.grouping_labels(group_by)
    grouped = (
        rows.values("open_hour", "team_slug", "is_idle", "is_priced", *labels)
        .annotate(cost=Sum("cost_micros"), ms=Sum("gpu_milliseconds"))
        .order_by()
    )
    return [
        LedgerEntry(
            hour=hours[row["open_hour"]].hour,
            cluster_name=hours[row["open_hour"]].cluster.name,
            node_name="",
            instance_type="",
            kind=LedgerKind.IDLE if row["is_idle"] else LedgerKind.ALLOCATED,
            team_slug=row["team_slug"],
            namespace="",
            workload_name="",
            labels={name: row[name] for name in labels if row[name]},
            gpu_milliseconds=int(row["ms"]),
            cost_amount=(Decimal(row["cost"]) * MICRO).quantize(MICRO),
            usd_per_hour_amount=Decimal(0) if row["is_priced"] else None,
        )
        for row in grouped
    ]
