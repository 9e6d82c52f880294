"""Pods of a workload, as last observed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import QuerySet

from fleet.models import Pod
from portal.accounts import policy
from portal.accounts.policy import Actor


@dataclass(frozen=True, slots=True)
class PodInfo:
    """A pod of a workload. `reason` and `message` are the cluster's own, empty while the pod is ready."""

    name: str
    phase: str
    reason: str
    message: str
    is_ready: bool
    node_name: str
    # None until the node itself is observed.
    node_id: int | None
    restart_count: int
    created_at: datetime
    scheduled_at: datetime | None
    ready_at: datetime | None


def list_pods(*, cluster_id: int, namespace: str, name: str) -> list[PodInfo]:
    """Return the pods that exist now, newest first. `name` is the workload's."""
    rows = Pod.objects.filter(
        cluster_id=cluster_id,
        namespace=namespace,
        workload__name=name,
        workload__namespace=namespace,
        gone_at=None,
    )
    return [
        PodInfo(
            name=row.name,
            phase=row.phase,
            reason=row.reason,
            message=row.message,
            is_ready=row.is_ready,
            node_name=row.node_name,
            node_id=row.node_id,
            restart_count=row.restart_count,
            created_at=row.created_at,
            scheduled_at=row.scheduled_at,
            ready_at=row.ready_at,
        )
        for row in rows.order_by("-created_at", "name")
    ]


def list_visible_to(
    actor: Actor, *, cluster_id: int | None = None, team_slug: str | None = None
) -> QuerySet[Pod]:
    """List the pods that exist now of the teams that the actor may see. Admins also see unregistered ones."""
    pods = Pod.objects.filter(gone_at=None).select_related("cluster", "workload__team")
    if not policy.sees_all(actor):
        pods = pods.filter(workload__team__in=policy.visible_teams(actor))
    if cluster_id is not None:
        pods = pods.filter(cluster_id=cluster_id)
    if team_slug:
        pods = pods.filter(workload__team__slug=team_slug)
    return pods
