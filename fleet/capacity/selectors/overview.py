"""The Fleet page: nodes, and GPUs with their holders and utilisation, in a constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, NamedTuple

from django.db.models import BigIntegerField, Max, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from fleet.capacity.domain import node_taints, tiles
from fleet.capacity.domain.overview import (
    OTHER_TEAM,
    FleetOverview,
    GpuHolder,
    NodeOverview,
    NodeSummary,
    PendingPod,
)
from fleet.capacity.selectors import notices, tainted
from fleet.costs.domain.results import UNATTRIBUTED
from fleet.gpus.domain.device_taints import Blocked
from fleet.gpus.domain.intervals import minute_of
from fleet.gpus.domain.shares import GPU_PPM
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook, PriceKey
from fleet.models import GpuLease, Node, Pod, WorkloadMinute
from fleet.observation.domain import node_health
from fleet.telemetry.domain.counters import source_label
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core import clock

_RECENT = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class _Utilisation:
    ratio: float
    source: str


@dataclass(frozen=True, slots=True)
class _Visibility:
    """The teams whose pods the actor may see by name."""

    teams: frozenset[str]
    sees_all: bool

    def covers(self, team_slug: str) -> bool:
        return self.sees_all or not team_slug or team_slug in self.teams


def fleet_overview(*, actor: Actor, cluster_id: int | None = None) -> FleetOverview:
    """Return the totals of the fleet, and each node without its holders."""
    visibility = decide_visibility(actor)
    summaries = _summaries(cluster_id)
    summaries.sort(key=lambda node: (-node.free_ppm, node.cluster_name, node.name))
    gpus = sum(node.gpu_count for node in summaries)
    idle_ppm = sum(node.idle_ppm for node in summaries)
    priced = [node for node in summaries if node.usd_per_hour_amount is not None]
    return FleetOverview(
        nodes=tuple(summaries),
        pending=tuple(_pending(visibility, cluster_id)),
        gpus=gpus,
        allocated_gpus=gpus - Decimal(idle_ppm) / GPU_PPM,
        tainted_gpus=Decimal(sum(n.tainted_ppm for n in summaries)) / GPU_PPM,
        idle_usd_per_hour_amount=sum(
            (
                (n.usd_per_hour_amount or 0) * Decimal(n.idle_ppm) / GPU_PPM / n.gpu_count
                for n in priced
                if n.idle_ppm
            ),
            Decimal(0),
        ),
        utilisation=_mean_utilisation(visibility, cluster_id),
    )


def list_nodes(*, actor: Actor, ids: Collection[int]) -> list[NodeOverview]:
    """List these nodes with their GPUs and holders, in the order of `ids`."""
    visibility = decide_visibility(actor)
    rows = _leases_on(ids)
    busy = _utilisation_by_workload([lease.workload_id for lease in rows])
    by_node: dict[int, list[GpuHolder]] = defaultdict(list)
    for lease in rows:
        by_node[lease.node_id].append(_holder(lease, visibility, busy))
    found = Node.objects.filter(pk__in=ids).select_related("cluster")
    # What each node would carry of its cluster again.
    nodes = found.defer("cluster__capabilities", "cluster__serving").in_bulk()
    book = prices.book({node.instance_type for node in nodes.values()}, on=clock.now().date())
    taints = tainted.by_node(nodes.values())
    return [_node(nodes[pk], by_node[pk], taints.get(pk, ()), book) for pk in ids if pk in nodes]


class _Lease(NamedTuple):
    node_id: int
    team_slug: str
    namespace: str
    pod_name: str
    share_ppm: int
    started_at: datetime
    workload_id: int | None
    # Empty without a workload or the label.
    workload_name: str | None
    deployment: str | None


def _leases_on(ids: Collection[int]) -> list[_Lease]:
    """Return the current leases on these nodes. A fleet has thousands: as tuples, they cost half."""
    leases = GpuLease.objects.filter(ended_at=None, node__in=ids)
    rows = leases.order_by("-share_ppm", "pod_name").values_list(
        *("node_id", "team_slug", "namespace", "pod_name", "share_ppm", "started_at"),
        *("workload_id", "workload__name", KeyTextTransform("deployment", "workload__labels")),
    )
    return [_Lease(*row) for row in rows]


def _summaries(cluster_id: int | None) -> list[NodeSummary]:
    nodes = Node.objects.filter(gone_at=None, gpu_count__gt=0)
    leases = GpuLease.objects.filter(ended_at=None)
    if cluster_id is not None:
        nodes, leases = nodes.filter(cluster_id=cluster_id), leases.filter(cluster_id=cluster_id)
    held = dict(leases.values_list("node").annotate(Sum("share_ppm")).order_by())
    rows = list(
        nodes.values_list(
            *("pk", "cluster_id", "cluster__name", "name", "instance_type", "capacity_type"),
            *("gpu_product", "gpu_count", "is_simulated", "region", "cluster__region"),
        )
    )
    blocked = tainted.read_blocked_gpus(nodes)
    today = clock.now().date()
    book = prices.book({row[4] for row in rows}, on=today)
    amounts: dict[tuple[PriceKey, int], Decimal | None] = {}
    summaries = []
    for *facts, region, of_cluster in rows:
        pk, gpu_count = facts[0], facts[7]
        key = (PriceKey(facts[4], region or of_cluster, facts[5]), gpu_count)
        if key not in amounts:
            price = book.on(key[0], today)
            amounts[key] = price.scale_to_gpus(gpu_count).usd_per_hour_amount if price else None
        tainted_ppm = sum(one.ppm for one in blocked[pk]) if pk in blocked else 0
        row: tuple[Any, ...] = (*facts, held.get(pk, 0), amounts[key], tainted_ppm)
        summaries.append(NodeSummary(*row))
    return summaries


def decide_visibility(actor: Actor) -> _Visibility:
    sees_all = policy.sees_all(actor)
    teams = [] if sees_all else policy.visible_teams(actor).values_list("slug", flat=True)
    return _Visibility(frozenset(teams), sees_all)


def _utilisation_by_workload(
    workload_ids: Collection[int | None],
) -> dict[int, _Utilisation]:
    """Return the utilisation by workload id in the last minutes, without unobserved workloads."""
    ids = {pk for pk in workload_ids if pk is not None}
    rows = (
        _observed_minutes()
        .filter(workload__in=ids)
        .values_list("workload_id")
        .annotate(Sum("gpu_busy_ms"), Sum("observed_ms"), Max("gpu_busy_source"))
        .order_by()
    )
    return {
        workload: _Utilisation(min(1.0, busy / observed), source_label(source))
        for workload, busy, observed, source in rows
    }


def _ratios() -> dict[int, float]:
    """Return the utilisation of all workloads by id, without the source."""
    sums = _observed_minutes().values_list("workload_id")
    # PostgreSQL adds integers to a decimal, which takes longer to read.
    busy, observed = (Cast(Sum(name), BigIntegerField()) for name in ("gpu_busy_ms", "observed_ms"))
    rows = sums.annotate(busy=busy, observed=observed).order_by()
    return {workload: min(1.0, busy_ms / observed_ms) for workload, busy_ms, observed_ms in rows}


def _observed_minutes() -> QuerySet[WorkloadMinute]:
    # The current minute may have a single reading.
    since = minute_of(clock.now()) - _RECENT
    return WorkloadMinute.objects.filter(start__gt=since, observed_ms__gt=0)


def _holder(lease: _Lease, visibility: _Visibility, busy: Mapping[int, _Utilisation]) -> GpuHolder:
    if not visibility.covers(lease.team_slug):
        return GpuHolder(label=OTHER_TEAM, share_ppm=lease.share_ppm, is_visible=False)
    measured = busy.get(lease.workload_id) if lease.workload_id else None
    deployment, workload_name = lease.deployment or "", lease.workload_name or ""
    return GpuHolder(
        label=deployment or workload_name or lease.pod_name,
        share_ppm=lease.share_ppm,
        is_visible=True,
        team_slug=lease.team_slug or UNATTRIBUTED,
        namespace=lease.namespace,
        workload_name=workload_name,
        deployment=deployment,
        pod_name=lease.pod_name,
        since=lease.started_at,
        utilisation=measured.ratio if measured else None,
        utilisation_source=measured.source if measured else "",
    )


def _node(
    node: Node, holders: list[GpuHolder], blocked: Sequence[Blocked], book: PriceBook
) -> NodeOverview:
    price = book.find_node_price(node, clock.now().date())
    return NodeOverview(
        id=node.pk,
        cluster_id=node.cluster_id,
        cluster_name=node.cluster.name,
        name=node.name,
        instance_type=node.instance_type,
        capacity_type=node.capacity_type,
        zone=node.zone,
        gpu_product=node.gpu_product,
        gpu_count=node.gpu_count,
        gpu_memory_mib=node.gpu_memory_mib,
        is_ready=node.is_ready,
        is_schedulable=node.is_schedulable,
        is_simulated=node.is_simulated,
        usd_per_hour_amount=price.usd_per_hour_amount if price else None,
        tiles=tuple(tiles.place(holders, node.gpu_count, blocked)),
        last_seen_at=node.last_seen_at,
        notices=notices.list_node_notices(node),
        reserved_by=node_taints.list_reserving_taints(
            node_health.read_taints(node.taints),
            gpu_product=node.gpu_product,
            capacity_type=node.capacity_type,
        ),
    )


def _pending(visibility: _Visibility, cluster_id: int | None) -> list[PendingPod]:
    """Return the pods without a node. One that has a node holds its GPUs and only starts."""
    unscheduled = Pod.objects.filter(phase="Pending", node=None, node_name="")
    pods = unscheduled.filter(gone_at=None, ended_at=None, gpu_units__gt=0)
    if cluster_id is not None:
        pods = pods.filter(cluster_id=cluster_id)
    rows = pods.select_related("cluster", "workload__team").order_by("created_at")
    return [_pending_pod(pod, visibility) for pod in rows]


def _pending_pod(pod: Pod, visibility: _Visibility) -> PendingPod:
    team = pod.workload.team.slug if pod.workload else ""
    is_visible = visibility.covers(team)
    return PendingPod(
        cluster_id=pod.cluster_id,
        cluster_name=pod.cluster.name,
        namespace=pod.namespace if is_visible else "",
        name=pod.name if is_visible else OTHER_TEAM,
        is_visible=is_visible,
        team_slug=(team or UNATTRIBUTED) if is_visible else "",
        workload_name=pod.workload.name if pod.workload and is_visible else "",
        gpu_resource=pod.gpu_resource,
        gpu_units=pod.gpu_units,
        reason=pod.reason,
        message=pod.message,
        created_at=pod.created_at,
        deployment=pod.workload.labels.get("deployment", "") if pod.workload and is_visible else "",
        instance_types=tuple(pod.instance_types),
    )


def _mean_utilisation(visibility: _Visibility, cluster_id: int | None) -> float | None:
    """Return the mean utilisation over the visible holders with a measurement, weighted by share."""
    leases = GpuLease.objects.filter(ended_at=None)
    if cluster_id is not None:
        leases = leases.filter(cluster_id=cluster_id)
    if not visibility.sees_all:
        leases = leases.filter(team_slug__in=[*visibility.teams, ""])
    ratios = _ratios()
    share = Cast(Sum("share_ppm"), BigIntegerField())
    held = leases.exclude(workload=None).values_list("workload_id").annotate(share=share)
    shares = [
        (ratios[workload], share_ppm)
        for workload, share_ppm in held.order_by()
        if workload in ratios
    ]
    weight = sum(share for _, share in shares)
    return sum(ratio * share for ratio, share in shares) / weight if weight else None
