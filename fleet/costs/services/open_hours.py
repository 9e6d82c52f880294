"""Keep the estimate of unsealed hours of clusters with many nodes, which takes too long for a page."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import Count, Q

from fleet.costs.domain.results import LedgerEntry
from fleet.costs.selectors import metering
from fleet.gpus.domain.intervals import HOUR, hour_of
from fleet.models import Cluster, LedgerKind, OpenHour, OpenHourSum, SealedHour
from portal.core import clock
from portal.core.money import MICRO

MANY_NODES: Final = 200
_RENEWED_AFTER = timedelta(minutes=1)


def renew() -> int:
    """Update the estimate of the unsealed hours of large clusters; return the number of clusters."""
    now = clock.now()
    existing = Count("nodes", filter=Q(nodes__gone_at=None, nodes__gpu_count__gt=0))
    large = Cluster.objects.annotate(count=existing).filter(count__gt=MANY_NODES)
    renewed = 0
    for cluster in large.exclude(last_seen_at=None):
        fresh = OpenHour.objects.filter(
            cluster=cluster, hour=hour_of(now), computed_at__gt=now - _RENEWED_AFTER
        )
        if not fresh.exists():
            _renew(cluster, now)
            renewed += 1
    return renewed


def _renew(cluster: Cluster, now: datetime) -> None:
    estimate = metering.estimate(
        start=cluster.created_at - HOUR, end=now, now=now, only_clusters=[cluster.pk]
    )
    by_hour: dict[datetime, list[LedgerEntry]] = defaultdict(list, {hour_of(now): []})
    for entry in estimate.entries:
        by_hour[entry.hour].append(entry)
    with transaction.atomic():
        # Sealing takes the same lock: no hour is both sealed and estimated.
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        sealed = SealedHour.objects.filter(cluster=cluster, hour__in=by_hour)
        for hour in sealed.values_list("hour", flat=True):
            by_hour.pop(hour)
        OpenHour.objects.filter(cluster=cluster).delete()
        for hour, entries in by_hour.items():
            kept = OpenHour.objects.create(
                cluster=cluster,
                hour=hour,
                computed_at=now,
                unpriced_nodes=list(estimate.unpriced) if hour == hour_of(now) else [],
            )
            OpenHourSum.objects.bulk_create(_sums(kept, entries), batch_size=2000)


def _sums(kept: OpenHour, entries: list[LedgerEntry]) -> list[OpenHourSum]:
    sums: dict[tuple[str, str, str, str, bool, bool], OpenHourSum] = {}
    for entry in entries:
        model, deployment, revision = (
            str(entry.labels.get(name) or "") for name in ("model", "deployment", "revision")
        )
        is_idle = entry.kind == LedgerKind.IDLE
        key = (entry.team_slug, model, deployment, revision, is_idle, entry.is_priced)
        if key not in sums:
            sums[key] = OpenHourSum(
                open_hour=kept,
                team_slug=entry.team_slug,
                model=model,
                deployment=deployment,
                revision=revision,
                is_idle=is_idle,
                is_priced=entry.is_priced,
                gpu_milliseconds=0,
                cost_micros=0,
            )
        sums[key].gpu_milliseconds += entry.gpu_milliseconds
        sums[key].cost_micros += int(entry.cost_amount / MICRO)
    return list(sums.values())
