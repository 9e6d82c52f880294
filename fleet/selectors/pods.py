"""Pods of a workload, as last seen."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from fleet.models import Pod


@dataclass(frozen=True, slots=True)
class PodInfo:
    """`reason` and `message` say in the cluster's words why it is not ready; else empty."""

    name: str
    phase: str
    reason: str
    message: str
    is_ready: bool
    node_name: str
    restart_count: int
    created_at: datetime
    scheduled_at: datetime | None
    ready_at: datetime | None


def pods_of(*, cluster_id: int, namespace: str, name: str) -> list[PodInfo]:
    """Pods that exist now, newest first. `name` is the workload's."""
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
            restart_count=row.restart_count,
            created_at=row.created_at,
            scheduled_at=row.scheduled_at,
            ready_at=row.ready_at,
        )
        for row in rows.order_by("-created_at", "name")
    ]
