"""The Fleet page: every GPU with its holders and utilisation, in a constant number of queries."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from django.db.models import Max, Sum

from fleet.capacity.domain.overview import (
    OTHER_TEAM,
    FleetOverview,
    GpuTile,
    Holder,
    NodeView,
    PendingPod,
)
from fleet.costs.domain.results import UNATTRIBUTED
from fleet.gpus.domain.intervals import minute_of
from fleet.gpus.domain.shares import GPU_PPM
from fleet.gpus.selectors import prices
from fleet.gpus.selectors.prices import PriceBook
from fleet.models import GpuLease, Node, Pod, WorkloadMinute
from fleet.telemetry.domain.counters import source_label
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core import clock

# The current minute may have a single reading.
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
    visibility = visibility_of(actor)
    nodes = Node.objects.filter(gone_at=None, gpu_count__gt=0)
    leases = GpuLease.objects.filter(ended_at=None)
    if cluster_id is not None:
        nodes, leases = nodes.filter(cluster_id=cluster_id), leases.filter(cluster_id=cluster_id)
    busy = _utilisation_by_workload()
    by_node: dict[int, list[Holder]] = defaultdict(list)
    for lease in leases.select_related("workload").order_by("-share_ppm", "pod_name"):
        by_node[lease.node_id].append(_holder(lease, visibility, busy))
    rows = list(nodes.select_related("cluster"))
    book = prices.book({node.instance_type for node in rows})
    views = [_node(node, by_node[node.pk], book) for node in rows]
    views.sort(key=lambda view: (-view.free_gpus, view.cluster_name, view.name))
    return FleetOverview(
        nodes=tuple(views),
        pending=tuple(_pending(visibility, cluster_id)),
        gpus=sum(view.gpu_count for view in views),
        allocated_gpus=sum((view.gpu_count - view.free_gpus for view in views), Decimal(0)),
        idle_usd_per_hour_amount=sum(
            (view.idle_usd_per_hour_amount or Decimal(0) for view in views), Decimal(0)
        ),
        utilisation=_utilisation(views),
    )


def visibility_of(actor: Actor) -> _Visibility:
    sees_all = policy.sees_all(actor)
    teams = [] if sees_all else policy.visible_teams(actor).values_list("slug", flat=True)
    return _Visibility(frozenset(teams), sees_all)


def _utilisation_by_workload() -> dict[int, _Utilisation]:
    """Utilisation by workload id in the last minutes, without unobserved workloads."""
    rows = (
        WorkloadMinute.objects.filter(start__gt=minute_of(clock.now()) - _RECENT, observed_ms__gt=0)
        .values_list("workload_id")
        .annotate(Sum("gpu_busy_ms"), Sum("observed_ms"), Max("gpu_busy_source"))
        .order_by()
    )
    return {
        workload: _Utilisation(min(1.0, busy / observed), source_label(source))
        for workload, busy, observed, source in rows
    }


def _holder(lease: GpuLease, visibility: _Visibility, busy: Mapping[int, _Utilisation]) -> Holder:
    if not visibility.covers(lease.team_slug):
        return Holder(label=OTHER_TEAM, share_ppm=lease.share_ppm, is_visible=False)
    measured = busy.get(lease.workload_id) if lease.workload_id else None
    workload = lease.workload
    deployment = str(workload.labels.get("deployment", "")) if workload else ""
    return Holder(
        label=deployment or (workload.name if workload else lease.pod_name),
        share_ppm=lease.share_ppm,
        is_visible=True,
        team_slug=lease.team_slug or UNATTRIBUTED,
        namespace=lease.namespace,
        workload_name=workload.name if workload else "",
        deployment=deployment,
        pod_name=lease.pod_name,
        since=lease.started_at,
        utilisation=measured.ratio if measured else None,
        utilisation_source=measured.source if measured else "",
    )


def _node(node: Node, holders: list[Holder], book: PriceBook) -> NodeView:
    price = book.of_node(node, clock.now().date())
    return NodeView(
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
        tiles=tuple(place_holders(holders, node.gpu_count)),
        last_seen_at=node.last_seen_at,
    )


def place_holders(holders: list[Holder], gpu_count: int) -> list[GpuTile]:
    """Place holders on GPUs, the largest first. A holder of several GPUs appears on each of them; in an
    overcommitted cluster the rest goes onto the last GPU.
    """
    free = [GPU_PPM] * gpu_count
    tiles: list[list[Holder]] = [[] for _ in range(gpu_count)]
    for holder in sorted(holders, key=lambda holder: -holder.share_ppm):
        remaining = holder.share_ppm
        while remaining > 0 and gpu_count:
            part = min(remaining, GPU_PPM)
            index = next((i for i, space in enumerate(free) if space >= part), gpu_count - 1)
            tiles[index].append(holder)
            free[index] = max(0, free[index] - part)
            remaining -= part
    return [GpuTile(tuple(holders), space) for holders, space in zip(tiles, free, strict=True)]


def _pending(visibility: _Visibility, cluster_id: int | None) -> list[PendingPod]:
    pods = Pod.objects.filter(phase="Pending", gone_at=None, ended_at=None, gpu_units__gt=0)
    if cluster_id is not None:
        pods = pods.filter(cluster_id=cluster_id)
    rows = pods.select_related("cluster", "workload__team").order_by("created_at")
    return [_pending_pod(pod, visibility) for pod in rows]


def _pending_pod(pod: Pod, visibility: _Visibility) -> PendingPod:
    team = pod.workload.team.slug if pod.workload else ""
    is_visible = visibility.covers(team)
    return PendingPod(
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
    )


def _utilisation(views: list[NodeView]) -> float | None:
    """Mean over the visible holders with a measurement, weighted by share."""
    holders = {
        (view.cluster_id, holder.namespace, holder.pod_name): holder
        for view in views
        for tile in view.tiles
        for holder in tile.holders
        if holder.utilisation is not None
    }
    weight = sum(holder.share_ppm for holder in holders.values())
    if not weight:
        return None
    return sum((h.utilisation or 0.0) * h.share_ppm for h in holders.values()) / weight
