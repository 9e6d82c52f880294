"""Current traffic and allocated GPUs of many workloads, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.db.models import Count, Min, Sum

from fleet.gpus.domain.intervals import minute_of
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook, PriceKey
from fleet.models import GPU_PPM, GpuLease, Node, WorkloadMinute
from portal.core import clock

_WINDOW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    cluster_id: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """Sums over the minutes since `since`. A missing Traffic means not known, not idle."""

    since: datetime
    success: int
    failure: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class AllocatedGpus:
    """`usd_per_hour_amount` is None if the price of any node is not known."""

    gpus: Decimal
    usd_per_hour_amount: Decimal | None


@dataclass(frozen=True, slots=True)
class TeamMinute:
    at: datetime
    success: int
    failure: int
    duration_us: int


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
    by_key = {WorkloadKey(*row[:3]): Traffic(*row[3:]) for row in rows}
    return {key: by_key[key] for key in keys if key in by_key}


def allocated_to(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, AllocatedGpus]:
    leases = GpuLease.objects.filter(
        workload__cluster_id__in={key.cluster_id for key in keys},
        workload__namespace__in={key.namespace for key in keys},
        workload__name__in={key.name for key in keys},
        ended_at=None,
    ).select_related("workload", "node__cluster")
    book = prices.book({lease.node.instance_type for lease in leases}, on=clock.now().date())
    allocated: dict[WorkloadKey, AllocatedGpus] = {}
    for lease in leases:
        if lease.workload is None:
            continue
        workload = lease.workload
        key = WorkloadKey(workload.cluster_id, workload.namespace, workload.name)
        allocated[key] = _plus(allocated.get(key), lease, book)
    return allocated


def allocated_to_team(*, team_slug: str) -> AllocatedGpus:
    return allocated_to_teams(team_slugs=[team_slug])


def allocated_to_teams(*, team_slugs: Collection[str]) -> AllocatedGpus:
    """GPUs that the teams' pods hold now, including pods of unregistered workloads."""
    rows = GpuLease.objects.filter(team_slug__in=team_slugs, ended_at=None)
    leases = list(rows.select_related("node__cluster"))
    book = prices.book({lease.node.instance_type for lease in leases}, on=clock.now().date())
    total = AllocatedGpus(Decimal(0), Decimal(0))
    for lease in leases:
        total = _plus(total, lease, book)
    return total


def allocated_by_team(*, team_slugs: Collection[str]) -> dict[str, AllocatedGpus]:
    """As allocated_to_teams, by team; teams that hold none are left out."""
    rows = GpuLease.objects.filter(team_slug__in=team_slugs, ended_at=None)
    leases = list(rows.select_related("node__cluster"))
    book = prices.book({lease.node.instance_type for lease in leases}, on=clock.now().date())
    allocated: dict[str, AllocatedGpus] = {}
    for lease in leases:
        allocated[lease.team_slug] = _plus(allocated.get(lease.team_slug), lease, book)
    return allocated


def all_gpus() -> AllocatedGpus:
    """Every GPU of every current node, allocated or idle: the sum of the ledger's rows."""
    kinds = list(
        Node.objects.filter(gone_at=None, gpu_count__gt=0)
        .values_list(
            *("instance_type", "region", "cluster__region", "capacity_type", "gpu_count"),
        )
        .annotate(Count("pk"))
        .order_by()
    )
    today = clock.now().date()
    book = prices.book({kind[0] for kind in kinds}, on=today)
    gpus, amount, is_known = 0, Decimal(0), True
    for instance_type, region, of_cluster, capacity_type, gpu_count, nodes in kinds:
        key = PriceKey(instance_type, region or of_cluster, capacity_type)
        price = book.on(key, today)
        gpus += gpu_count * nodes
        is_known = is_known and price is not None
        if price is not None:
            amount += price.of_gpus(gpu_count).usd_per_hour_amount * nodes
    return AllocatedGpus(Decimal(gpus), amount if is_known else None)


def minutes_of_team(*, team_slug: str, minutes: int = 30) -> list[TeamMinute]:
    """Oldest first, without the minutes in which nothing was observed."""
    rows = (
        WorkloadMinute.objects.filter(
            workload__team__slug=team_slug,
            start__gte=minute_of(clock.now() - timedelta(minutes=minutes)),
            observed_ms__gt=0,
        )
        .values_list("start")
        .annotate(
            success=Sum("request_success"),
            failure=Sum("request_failure"),
            duration=Sum("request_duration_us"),
        )
        .order_by("start")
    )
    return [TeamMinute(*row) for row in rows]


def _plus(before: AllocatedGpus | None, lease: GpuLease, book: PriceBook) -> AllocatedGpus:
    gpus = Decimal(lease.share_ppm) / GPU_PPM
    amount = _price_of(lease, book)
    if before is None:
        return AllocatedGpus(gpus, amount)
    usd_per_hour = None
    if before.usd_per_hour_amount is not None and amount is not None:
        usd_per_hour = before.usd_per_hour_amount + amount
    return AllocatedGpus(before.gpus + gpus, usd_per_hour)


def _price_of(lease: GpuLease, book: PriceBook) -> Decimal | None:
    amount = _price_of_node(lease.node, book)
    if amount is None or not lease.node.gpu_count:
        return None
    return amount * lease.share_ppm / (lease.node.gpu_count * GPU_PPM)


def _price_of_node(node: Node, book: PriceBook) -> Decimal | None:
    price = book.of_node(node, clock.now().date())
    return price.usd_per_hour_amount if price else None
