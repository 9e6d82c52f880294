"""Current traffic and allocated GPUs of many workloads, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from django.db.models import Count, Min, QuerySet, Sum

from fleet.gpus.domain import neuron, shares
from fleet.gpus.domain.intervals import minute_of
from fleet.gpus.domain.rates import EndingRate
from fleet.gpus.domain.shares import GPU_PPM
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceKey
from fleet.models import GpuLease, Node, WorkloadHour, WorkloadMinute
from portal.core import clock

_WINDOW = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class WorkloadKey:
    cluster_id: int
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Traffic:
    """The traffic since `since`, as sums over the minutes. A missing Traffic means unknown, not idle."""

    since: datetime
    success: int
    failure: int
    duration_us: int


@dataclass(frozen=True, slots=True)
class AllocatedGpus:
    """The GPUs that are held now, and their price. `usd_per_hour_amount` is None if the price of any node is not
    known. `ending` is the part of it that ends by itself.
    """

    gpus: Decimal
    usd_per_hour_amount: Decimal | None
    ending: tuple[EndingRate, ...] = ()
    # Of which some are held: the whole resources, nvidia.com/gpu and aws.amazon.com/neuron.
    resources: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TeamMinute:
    at: datetime
    success: int
    failure: int
    duration_us: int


def sum_traffic(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, Traffic]:
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


def count_workload_gpus(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, AllocatedGpus]:
    leases = GpuLease.objects.filter(
        workload__cluster_id__in={key.cluster_id for key in keys},
        workload__namespace__in={key.namespace for key in keys},
        workload__name__in={key.name for key in keys},
        ended_at=None,
    )
    names = ("workload__cluster_id", "workload__namespace", "workload__name")
    return {WorkloadKey(*group): gpus for group, gpus in _allocated_by(leases, *names).items()}


def count_team_gpus(*, team_slug: str) -> AllocatedGpus:
    return count_teams_gpus(team_slugs=[team_slug])


def count_teams_gpus(*, team_slugs: Collection[str]) -> AllocatedGpus:
    """Return the GPUs that the teams' pods hold now, including pods of unregistered workloads."""
    leases = GpuLease.objects.filter(team_slug__in=team_slugs, ended_at=None)
    return _allocated_by(leases).get((), AllocatedGpus(Decimal(0), Decimal(0)))


def count_gpus_by_team(*, team_slugs: Collection[str]) -> dict[str, AllocatedGpus]:
    """Return the allocated GPUs by team slug, as `allocated_to_teams` does. Teams that hold none are left out."""
    leases = GpuLease.objects.filter(team_slug__in=team_slugs, ended_at=None)
    return {team: gpus for (team,), gpus in _allocated_by(leases, "team_slug").items()}


def all_gpus() -> AllocatedGpus:
    """Return every GPU of every current node, allocated or idle: the sum of the ledger's rows."""
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
            amount += price.scale_to_gpus(gpu_count).usd_per_hour_amount * nodes
    return AllocatedGpus(Decimal(gpus), amount if is_known else None)


def minutes_of_team(*, team_slug: str, minutes: int = 30) -> list[TeamMinute]:
    """Return the minutes of a team, oldest first, without those in which nothing was observed."""
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


def has_answered_requests(*, team_slug: str) -> bool:
    """Whether a request to one of the team's workloads was ever counted as answered."""
    tables = (WorkloadMinute, WorkloadHour)
    return any(
        table.objects.filter(workload__team__slug=team_slug, request_success__gt=0).exists()
        for table in tables
    )


def _allocated_by(leases: QuerySet[GpuLease], *names: str) -> dict[tuple[Any, ...], AllocatedGpus]:
    """Group the allocated GPUs by these columns. The database adds up the shares on nodes of one kind, which have
    one price.
    """
    kinds = list(
        leases.values_list(
            *names,
            *("node__instance_type", "node__region", "node__cluster__region"),
            *("node__capacity_type", "node__gpu_count", "workload__ends_at"),
        )
        .annotate(Sum("share_ppm"))
        .order_by()
    )
    today = clock.now().date()
    book = prices.book({kind[len(names)] for kind in kinds}, on=today)
    allocated: dict[tuple[Any, ...], AllocatedGpus] = {}
    for kind in kinds:
        group, (instance_type, region, of_cluster, capacity_type, gpu_count, ends_at, share_ppm) = (
            kind[: len(names)],
            kind[len(names) :],
        )
        price = book.on(PriceKey(instance_type, region or of_cluster, capacity_type), today)
        amount = None
        if price is not None and gpu_count:
            whole = price.scale_to_gpus(gpu_count).usd_per_hour_amount
            amount = whole * share_ppm / (gpu_count * GPU_PPM)
        gpus = Decimal(share_ppm) / GPU_PPM
        ending = (EndingRate(ends_at, amount),) if ends_at and amount is not None else ()
        is_neuron = neuron.product_of_type(instance_type) is not None
        resources = frozenset({neuron.DEVICE if is_neuron else shares.WHOLE})
        held = AllocatedGpus(gpus, amount, ending, resources)
        allocated[group] = _plus(allocated.get(group), held)
    return allocated


def _plus(before: AllocatedGpus | None, more: AllocatedGpus) -> AllocatedGpus:
    if before is None:
        return more
    usd_per_hour = None
    if before.usd_per_hour_amount is not None and more.usd_per_hour_amount is not None:
        usd_per_hour = before.usd_per_hour_amount + more.usd_per_hour_amount
    return AllocatedGpus(
        before.gpus + more.gpus,
        usd_per_hour,
        before.ending + more.ending,
        before.resources | more.resources,
    )
