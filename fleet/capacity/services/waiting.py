"""Who waits for which GPU, as one person may see it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fleet.capacity.domain import waiting
from fleet.capacity.domain.overview import OTHER_TEAM, PendingPod
from fleet.capacity.domain.waiting import IdleHolder, Waiter, WaiterKind, WaitingRow
from fleet.capacity.selectors import overview
from fleet.capacity.selectors import waiting as readings
from fleet.capacity.services import wait_sources
from portal.accounts.policy import Actor

# Batch jobs have it in front of their name, where workloads of deployments have the name alone.
_BATCH = "batch/"
# Enough to choose from; the pods of each are looked up.
_MOST_IDLE = 50


def list_waiting(
    *, actor: Actor, pending: Sequence[PendingPod], most: int, cluster_id: int | None = None
) -> tuple[list[WaitingRow], int]:
    """Explain the `most` longest waits, and count all. They are those of `pending`, which the overview read for the
    actor, and of jobs that have no pods yet. Takes the same number of queries for any number of waits.
    """
    visibility = overview.decide_visibility(actor)
    jobs = [
        job if visibility.covers(job.team_slug) else _hide(job)
        for job in wait_sources.list_queued_jobs()
        if cluster_id in (None, job.cluster_id)
    ]
    waiters = waiting.group_waiters([*map(_describe_pod, pending), *jobs])
    if not waiters:
        return [], 0
    count, waiters = len(waiters), waiters[:most]
    gated = {waiter.key for waiter in waiters if waiter.reason == waiting.GATED}
    places = wait_sources.find_places({key for key in gated if key[2]})
    placed = [replace(one, place=one.place or places.get(one.key)) for one in waiters]
    clusters = {waiter.cluster_id for waiter in waiters}
    resources = sorted({waiter.resource for waiter in waiters})
    nodes = readings.list_node_units(clusters, resources)
    idle = _list_idle(clusters, resources, visibility.covers)
    return waiting.explain(placed, nodes, idle), count


def _list_idle(
    clusters: set[int], resources: Sequence[str], is_visible: Callable[[str], bool]
) -> list[IdleHolder]:
    idle = sorted(wait_sources.list_idle(clusters), key=lambda one: -one.idle_days)[:_MOST_IDLE]
    days = {(one.cluster_id, one.team_slug, one.name): one.idle_days for one in idle}
    names = {(one.team_slug, one.name) for one in idle}
    held = readings.list_held_units(clusters, resources, names) if names else []
    return [
        IdleHolder(
            cluster_id=cluster,
            team_slug=team if is_visible(team) else "",
            deployment=name if is_visible(team) else OTHER_TEAM,
            is_visible=is_visible(team),
            resource=resource,
            instance_type=instance_type,
            units=units,
            idle_days=days[cluster, team, name],
        )
        for cluster, team, name, resource, instance_type, units in held
        if (cluster, team, name) in days
    ]


def _hide(job: Waiter) -> Waiter:
    place = replace(job.place, queue="", why="") if job.place else None
    return replace(
        job,
        team_slug="",
        name=OTHER_TEAM,
        namespace="",
        workload_name="",
        is_visible=False,
        place=place,
    )


def _describe_pod(pod: PendingPod) -> Waiter:
    name = pod.deployment.removeprefix(_BATCH)
    kind = WaiterKind.DEPLOYMENT if name else WaiterKind.OTHER
    if name != pod.deployment:
        kind = WaiterKind.BATCH_JOB
    return Waiter(
        kind=kind,
        cluster_id=pod.cluster_id,
        cluster_name=pod.cluster_name,
        team_slug=pod.team_slug,
        name=name or pod.workload_name or pod.name,
        is_visible=pod.is_visible,
        resource=pod.gpu_resource,
        units=pod.gpu_units,
        since=pod.created_at,
        instance_types=pod.instance_types,
        namespace=pod.namespace,
        workload_name=pod.workload_name,
        reason=pod.reason,
        message=pod.message,
    )
