"""Seal hours into the ledger, and correct sealed hours by adjustment rows.

A node without a known price does not delay others: its rows are sealed at cost 0, and adjustment rows
add the cost once a price is loaded.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from django.db import IntegrityError, transaction
from django.db.models import Sum

from fleet.costs.domain import ledger
from fleet.costs.domain.ledger import Holder, LedgerPart
from fleet.costs.selectors import metering, unpriced
from fleet.costs.selectors.metering import HourPrice, NodeFacts
from fleet.gpus.domain.intervals import HOUR, hour_of, hours_between
from fleet.models import (
    Cluster,
    GpuLease,
    LedgerKind,
    LedgerRow,
    OpenHour,
    SealedHour,
    UnpricedHour,
)
from portal.core import clock
from portal.core.money import MICRO

logger = logging.getLogger(__name__)

# Grace period for the last observations of an hour.
SEAL_AFTER = timedelta(minutes=3)
_HOURS_PER_RUN = 100
_CORRECT_WITHIN = timedelta(hours=1)
# A lease carries the time of its observation and is written a little later: an hour may
# be sealed in between. Adjusting a correct hour adds nothing.
_WRITTEN_WITHIN = timedelta(minutes=2)


def seal_due() -> list[datetime]:
    """Seal hours that ended and were observed completely; return them.

    Repeated and concurrent runs add nothing.
    """
    now = clock.now()
    sealed: list[datetime] = []
    for cluster in Cluster.objects.exclude(last_seen_at=None):
        ready = _open_hours(cluster, now)
        facts = _facts_by_hour(cluster, ready)
        sealed += [hour for hour in ready if _seal(cluster, hour, facts, now)]
    return sealed


def correct_late() -> int:
    """Adjust hours that were sealed before a late observation. Returns the number of rows added."""
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
    """Adjust hours sealed without a price that is known now. Returns the number of rows added."""
    added = 0
    for cluster in Cluster.objects.filter(nodes__unpriced_hours__isnull=False).distinct():
        for hour, nodes in unpriced.hours_with_a_price(cluster, max_hours=_HOURS_PER_RUN).items():
            added += adjust(cluster=cluster, hour=hour, node_ids=nodes)
    return added


def adjust(*, cluster: Cluster, hour: datetime, node_ids: Collection[int] | None = None) -> int:
    """Add the difference between the current facts and the sealed rows; return the number of rows added.

    `node_ids` None means every node of the cluster.
    """
    now = clock.now()
    added = 0
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        for facts in metering.facts_of_nodes(start=hour, end=hour + HOUR, cluster_ids=[cluster.pk]):
            if node_ids is None or facts.node.pk in node_ids:
                added += _adjust_node(facts, hour, now)
    if added:
        logger.info("ledger: %s adjusted at %s by %s rows", cluster.name, hour, added)
    return added


def _adjust_node(facts: NodeFacts, hour: datetime, now: datetime) -> int:
    facts = replace(facts, sealed_price=_sealed_price(facts, hour))
    changes = ledger.difference(_sums_of(facts, hour), facts.parts(hour))
    rows = _rows(facts, hour, changes, now, is_adjustment=True)
    LedgerRow.objects.bulk_create(rows)
    if facts.price_at(hour) is not None:
        UnpricedHour.objects.filter(node=facts.node, hour=hour).delete()
    return len(rows)


def _sealed_price(facts: NodeFacts, hour: datetime) -> HourPrice | None:
    """Return the price that the hour was sealed with. None if it had none.

    A price that is entered or corrected later does not change an hour that was sealed with another.
    """
    rows = LedgerRow.objects.filter(node_uid=facts.node.uid, hour=hour)
    row = rows.exclude(usd_per_hour_amount=None).order_by("pk").first()
    if row is None or row.usd_per_hour_amount is None:
        return None
    return HourPrice(row.usd_per_hour_amount, row.price_source)


def _open_hours(cluster: Cluster, now: datetime) -> list[datetime]:
    """Return the hours that ended, were observed beyond their end and are not sealed, oldest first."""
    observed_to = cluster.last_seen_at or cluster.created_at
    until = hour_of(min(now - SEAL_AFTER, observed_to))
    done = set(
        SealedHour.objects.filter(cluster=cluster, hour__lt=until).values_list("hour", flat=True)
    )
    hours = (hour for hour in hours_between(cluster.created_at, until) if hour not in done)
    return [hour for hour, _ in zip(hours, range(_HOURS_PER_RUN), strict=False)]


def _facts_by_hour(cluster: Cluster, hours: list[datetime]) -> list[NodeFacts]:
    if not hours:
        return []
    return metering.facts_of_nodes(start=hours[0], end=hours[-1] + HOUR, cluster_ids=[cluster.pk])


def _seal(cluster: Cluster, hour: datetime, facts: list[NodeFacts], now: datetime) -> bool:
    """Seal one hour; False when another worker did so first."""
    existing = [node_facts for node_facts in facts if node_facts.exists_in(hour)]
    rows = [
        row
        for node_facts in existing
        for row in _rows(node_facts, hour, node_facts.parts(hour), now)
    ]
    without_price = [
        UnpricedHour(node=node_facts.node, hour=hour)
        for node_facts in existing
        if node_facts.price_at(hour) is None
    ]
    try:
        with transaction.atomic():
            # Roll-ups of one cluster are written by one transaction at a time.
            Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
            SealedHour.objects.create(cluster=cluster, hour=hour, sealed_at=now)
            LedgerRow.objects.bulk_create(rows, batch_size=5000)
            OpenHour.objects.filter(cluster=cluster, hour=hour).delete()
            UnpricedHour.objects.bulk_create(without_price)
    except IntegrityError:
        return False
    logger.info("ledger: %s sealed %s with %s rows", cluster.name, hour, len(rows))
    return True


def _rows(
    facts: NodeFacts,
    hour: datetime,
    parts: list[LedgerPart],
    now: datetime,
    *,
    is_adjustment: bool = False,
) -> list[LedgerRow]:
    return list(_each_row(facts, hour, parts, now, is_adjustment=is_adjustment))


def _each_row(
    facts: NodeFacts, hour: datetime, parts: list[LedgerPart], now: datetime, *, is_adjustment: bool
) -> Iterator[LedgerRow]:
    price = facts.price_at(hour)
    for part in parts:
        kind = LedgerKind.ALLOCATED if part.holder else LedgerKind.IDLE
        yield LedgerRow(
            hour=hour,
            cluster_name=facts.cluster.name,
            node_uid=facts.node.uid,
            node_name=facts.node.name,
            instance_type=facts.node.instance_type,
            capacity_type=facts.node.capacity_type,
            kind=LedgerKind.ADJUSTMENT if is_adjustment else kind,
            team_slug=part.holder.team_slug if part.holder else "",
            namespace=part.holder.namespace if part.holder else "",
            workload_name=part.holder.workload_name if part.holder else "",
            workload_labels=facts.labels.get(part.holder, {}) if part.holder else {},
            gpu_milliseconds=part.gpu_milliseconds,
            cost_amount=part.cost_amount,
            usd_per_hour_amount=price.usd_per_hour_amount if price else None,
            price_source=price.source if price else "",
            sealed_at=now,
        )


def _sums_of(facts: NodeFacts, hour: datetime) -> dict[Holder | None, tuple[int, Decimal]]:
    """Sum the node's hour by holder, including adjustments.

    The sums are rounded to micro-dollars, because SQLite adds decimals as floating point.
    """
    rows = (
        LedgerRow.objects.filter(node_uid=facts.node.uid, hour=hour)
        .values_list("team_slug", "namespace", "workload_name")
        .annotate(Sum("gpu_milliseconds"), Sum("cost_amount"))
        .order_by()
    )
    return {
        (Holder(team, namespace, name) if namespace else None): (ms, cost.quantize(MICRO))
        for team, namespace, name, ms, cost in rows
    }
