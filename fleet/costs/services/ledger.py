"""Sealing hours into the ledger, and correcting sealed ones by adjustment rows.

A node without a known price holds up no other: its rows are sealed without cost, and adjustment rows
price them once a price is loaded.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Sum

from fleet.costs.domain import ledger
from fleet.costs.domain.ledger import Holder, Part
from fleet.costs.selectors import metering, unpriced
from fleet.costs.selectors.metering import NodeFacts
from fleet.gpus.domain.intervals import HOUR, hour_of, hours_between
from fleet.models import Cluster, GpuLease, LedgerKind, LedgerRow, SealedHour, UnpricedHour
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
    """Seal what has ended and was observed to its end. Returns the hours sealed.

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


def price_late() -> int:
    """Adjust hours that were sealed without a price where one is known now; returns rows added."""
    added = 0
    for cluster in Cluster.objects.filter(nodes__unpriced_hours__isnull=False).distinct():
        for hour, nodes in unpriced.hours_with_a_price(cluster, most=_HOURS_PER_RUN).items():
            added += adjust(cluster=cluster, hour=hour, node_ids=nodes)
    return added


def adjust(*, cluster: Cluster, hour: datetime, node_ids: Collection[int] | None = None) -> int:
    """Add the difference between what is known now and what was sealed; returns rows added.

    `node_ids` None: of every node of the cluster.
    """
    now = clock.now()
    added = 0
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        for one in metering.facts(start=hour, end=hour + HOUR, cluster_ids=[cluster.pk]):
            if node_ids is None or one.node.pk in node_ids:
                added += _adjust_node(one, hour, now)
    if added:
        logger.info("ledger: %s adjusted at %s by %s rows", cluster.name, hour, added)
    return added


def _adjust_node(one: NodeFacts, hour: datetime, now: datetime) -> int:
    changes = ledger.difference(_sums_of(one, hour), one.parts(hour))
    rows = _rows(one, hour, changes, now, is_adjustment=True)
    LedgerRow.objects.bulk_create(rows)
    if one.price_at(hour) is not None:
        UnpricedHour.objects.filter(node=one.node, hour=hour).delete()
    return len(rows)


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
    """False when another worker was first."""
    existed = [one for one in found if one.exists_in(hour)]
    rows = [row for one in existed for row in _rows(one, hour, one.parts(hour), now)]
    without_price = [
        UnpricedHour(node=one.node, hour=hour) for one in existed if one.price_at(hour) is None
    ]
    try:
        with transaction.atomic():
            SealedHour.objects.create(cluster=cluster, hour=hour, sealed_at=now)
            LedgerRow.objects.bulk_create(rows)
            UnpricedHour.objects.bulk_create(without_price)
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
    for part in parts:
        kind = LedgerKind.ALLOCATED if part.holder else LedgerKind.IDLE
        yield LedgerRow(
            hour=hour,
            cluster_name=one.cluster.name,
            node_uid=one.node.uid,
            node_name=one.node.name,
            instance_type=one.node.instance_type,
            capacity_type=one.node.capacity_type,
            kind=LedgerKind.ADJUSTMENT if is_adjustment else kind,
            team_slug=part.holder.team_slug if part.holder else "",
            namespace=part.holder.namespace if part.holder else "",
            workload_name=part.holder.workload_name if part.holder else "",
            workload_labels=one.labels.get(part.holder, {}) if part.holder else {},
            gpu_milliseconds=part.gpu_milliseconds,
            cost_amount=part.cost_amount,
            usd_per_hour_amount=price.usd_per_hour_amount if price else None,
            price_source=f"{price.source}, {price.valid_from}" if price else "",
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
