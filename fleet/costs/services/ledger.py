"""Sealing hours into the ledger, and correcting sealed ones by adjustment rows."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Sum

from fleet.domain import ledger
from fleet.domain.ledger import Holder, Part
from fleet.domain.metering import HOUR, hour_of, hours_between
from fleet.models import Cluster, GpuLease, LedgerKind, LedgerRow, SealedHour
from fleet.selectors import metering
from fleet.selectors.metering import NodeFacts
from portal.core import clock
from portal.core.money import MICRO

logger = logging.getLogger(__name__)

# Time for the last observations of an hour to arrive.
SEAL_AFTER = timedelta(minutes=3)
_HOURS_PER_RUN = 100
_CORRECT_WITHIN = timedelta(hours=1)
# A lease carries the time of the look that told of it, and is written a little later: an hour may
# have been sealed between the two. Adjusting what is right already adds nothing.
_WRITTEN_WITHIN = timedelta(minutes=2)


def seal_due() -> list[datetime]:
    """Seal what has ended, was observed to its end, and has a price. Returns the hours sealed.

    Running it again, or twice at once, adds nothing.
    """
    now = clock.now()
    sealed: list[datetime] = []
    for cluster in Cluster.objects.exclude(last_seen_at=None):
        ready = _open_hours(cluster, now)
        found = _facts_by_hour(cluster, ready)
        sealed += [hour for hour in ready if _seal(cluster, hour, found, now)]
    return sealed


def correct_late() -> int:
    """Adjust hours that were sealed before a fact about them was learnt; returns rows added."""
    now = clock.now()
    recent = GpuLease.objects.filter(changed_at__gte=now - _CORRECT_WITHIN)
    late: dict[int, set[datetime]] = defaultdict(set)
    for lease in recent:
        hours = SealedHour.objects.filter(
            cluster_id=lease.cluster_id,
            hour__gte=hour_of(lease.started_at),
            sealed_at__lte=lease.changed_at + _WRITTEN_WITHIN,
        )
        late[lease.cluster_id].update(hours.values_list("hour", flat=True))
    clusters = Cluster.objects.in_bulk(list(late))
    return sum(
        adjust(cluster=clusters[cluster_id], hour=hour)
        for cluster_id, hours in late.items()
        for hour in sorted(hours)
    )


def adjust(*, cluster: Cluster, hour: datetime) -> int:
    """Add the difference between what is known now and what was sealed; returns rows added."""
    now = clock.now()
    added = 0
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        for one in metering.facts(start=hour, end=hour + HOUR, cluster_ids=[cluster.pk]):
            parts = one.parts(hour)
            if parts is None:
                continue
            changes = ledger.difference(_sums_of(one, hour), parts)
            rows = _rows(one, hour, changes, now, is_adjustment=True)
            LedgerRow.objects.bulk_create(rows)
            added += len(rows)
    if added:
        logger.info("ledger: %s adjusted at %s by %s rows", cluster.name, hour, added)
    return added


def _open_hours(cluster: Cluster, now: datetime) -> list[datetime]:
    """Ended, observed beyond the end, not sealed; the oldest first."""
    seen = cluster.last_seen_at or cluster.created_at
    until = hour_of(min(now - SEAL_AFTER, seen))
    done = set(
        SealedHour.objects.filter(cluster=cluster, hour__lt=until).values_list("hour", flat=True)
    )
    hours = (hour for hour in hours_between(cluster.created_at, until) if hour not in done)
    return [hour for hour, _ in zip(hours, range(_HOURS_PER_RUN), strict=False)]


def _facts_by_hour(cluster: Cluster, hours: list[datetime]) -> list[NodeFacts]:
    if not hours:
        return []
    return metering.facts(start=hours[0], end=hours[-1] + HOUR, cluster_ids=[cluster.pk])


def _seal(cluster: Cluster, hour: datetime, found: list[NodeFacts], now: datetime) -> bool:
    """False when a price is missing or another worker was first."""
    existed = [one for one in found if one.exists_in(hour)]
    rows: list[LedgerRow] = []
    for one in existed:
        parts = one.parts(hour)
        if parts is None:
            return False
        rows += _rows(one, hour, parts, now)
    try:
        with transaction.atomic():
            SealedHour.objects.create(cluster=cluster, hour=hour, sealed_at=now)
            LedgerRow.objects.bulk_create(rows)
    except IntegrityError:
        return False
    logger.info("ledger: %s sealed %s with %s rows", cluster.name, hour, len(rows))
    return True


def _rows(
    one: NodeFacts,
    hour: datetime,
    parts: list[Part],
    now: datetime,
    *,
    is_adjustment: bool = False,
) -> list[LedgerRow]:
    return list(_each_row(one, hour, parts, now, is_adjustment=is_adjustment))


def _each_row(
    one: NodeFacts, hour: datetime, parts: list[Part], now: datetime, *, is_adjustment: bool
) -> Iterator[LedgerRow]:
    price = one.price_at(hour)
    if price is None:
        return
    for part in parts:
        kind = LedgerKind.ALLOCATED if part.holder else LedgerKind.IDLE
        yield LedgerRow(
            hour=hour,
            cluster_name=one.cluster.name,
            node_uid=one.node.uid,
            node_name=one.node.name,
            instance_type=one.node.instance_type,
            kind=LedgerKind.ADJUSTMENT if is_adjustment else kind,
            team_slug=part.holder.team_slug if part.holder else "",
            namespace=part.holder.namespace if part.holder else "",
            workload_name=part.holder.workload_name if part.holder else "",
            workload_labels=one.labels.get(part.holder, {}) if part.holder else {},
            gpu_milliseconds=part.gpu_milliseconds,
            cost_amount=part.cost_amount,
            usd_per_hour_amount=price.usd_per_hour_amount,
            price_source=f"{price.source}, {price.valid_from}",
            sealed_at=now,
        )


def _sums_of(one: NodeFacts, hour: datetime) -> dict[Holder | None, tuple[int, Decimal]]:
    """What the ledger holds for the node's hour, adjustments included.

    SQLite adds decimals as floating point; every row is a whole number of micro-dollars.
    """
    rows = (
        LedgerRow.objects.filter(node_uid=one.node.uid, hour=hour)
        .values_list("team_slug", "namespace", "workload_name")
        .annotate(Sum("gpu_milliseconds"), Sum("cost_amount"))
        .order_by()
    )
    return {
        (Holder(team, namespace, name) if namespace else None): (ms, cost.quantize(MICRO))
        for team, namespace, name, ms, cost in rows
    }
