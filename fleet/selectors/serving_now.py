"""What many workloads do and hold at this moment, in a fixed number of queries; for lists."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Min, Sum

from fleet.domain.metering import minute_of
from fleet.models import GPU_PPM, GpuLease, WorkloadMinute
from fleet.selectors import prices
from fleet.selectors.prices import PriceBook, PriceKey
from portal.core import clock

_WINDOW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    cluster_id: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over the minutes from `since` on. No Traffic at all means not known, not idle."""

    since: datetime
    success: int
    failure: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class Held:
    """`usd_per_hour_amount` None as soon as one node's price is not known."""

    gpus: Decimal
    usd_per_hour_amount: Decimal | None


@dataclass(frozen=True, slots=True)
class MinuteOfTeam:
    at: datetime
    success: int
    failure: int


def traffic_of(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, Traffic]:
    rows = (
        WorkloadMinute.objects.filter(
            workload__cluster_id__in={key.cluster_id for key in keys},
            workload__namespace__in={key.namespace for key in keys},
            workload__name__in={key.name for key in keys},
            start__gte=minute_of(clock.now() - _WINDOW),
            observed_ms__gt=0,
        )
        .values_list("workload__cluster_id", "workload__namespace", "workload__name")
        .annotate(
            since=Min("start"),
            success=Sum("request_success"),
            failure=Sum("request_failure"),
            duration=Sum("request_duration_us"),
        )
        .order_by()
    )
    found = {WorkloadKey(*row[:3]): Traffic(*row[3:]) for row in rows}
    return {key: found[key] for key in keys if key in found}


def held_by(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, Held]:
    leases = GpuLease.objects.filter(
        workload__cluster_id__in={key.cluster_id for key in keys},
        workload__namespace__in={key.namespace for key in keys},
        workload__name__in={key.name for key in keys},
        ended_at=None,
    ).select_related("workload", "node", "cluster")
    book = prices.book({lease.node.instance_type for lease in leases})
    held: dict[WorkloadKey, Held] = {}
    for lease in leases:
        if lease.workload is None:
            continue
        workload = lease.workload
        key = WorkloadKey(workload.cluster_id, workload.namespace, workload.name)
        held[key] = _plus(held.get(key), lease, book)
    return held


def held_by_team(*, team_slug: str) -> Held:
    """All that the team's pods hold now, registered workload or not."""
    leases = list(
        GpuLease.objects.filter(team_slug=team_slug, ended_at=None).select_related(
            "node", "cluster"
        )
    )
    book = prices.book({lease.node.instance_type for lease in leases})
    total = Held(Decimal(0), Decimal(0))
    for lease in leases:
        total = _plus(total, lease, book)
    return total


def minutes_of_team(*, team_slug: str, minutes: int = 30) -> list[MinuteOfTeam]:
    """Oldest first. A minute in which nothing was observed is missing."""
    rows = (
        WorkloadMinute.objects.filter(
            workload__team__slug=team_slug,
            start__gte=minute_of(clock.now() - timedelta(minutes=minutes)),
            observed_ms__gt=0,
        )
        .values_list("start")
        .annotate(success=Sum("request_success"), failure=Sum("request_failure"))
        .order_by("start")
    )
    return [MinuteOfTeam(*row) for row in rows]


def _plus(before: Held | None, lease: GpuLease, book: PriceBook) -> Held:
    gpus = Decimal(lease.share_ppm) / GPU_PPM
    amount = _price_of(lease, book)
    if before is None:
        return Held(gpus, amount)
    known = None
    if before.usd_per_hour_amount is not None and amount is not None:
        known = before.usd_per_hour_amount + amount
    return Held(before.gpus + gpus, known)


def _price_of(lease: GpuLease, book: PriceBook) -> Decimal | None:
    node = lease.node
    region = node.region or lease.cluster.region
    key = PriceKey(node.instance_type, region, node.capacity_type)
    price = book.on(key, clock.now().date())
    if price is None or not node.gpu_count:
        return None
    return price.usd_per_hour_amount * lease.share_ppm / (node.gpu_count * GPU_PPM)
