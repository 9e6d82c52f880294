"""Measured starts of pods."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from fleet.models import Pod

# Of all the workloads together, the newest first.
_MAX_STARTS = 500


@dataclass(frozen=True, slots=True)
class Start:
    """A measured start of a pod. `workload` is cluster, namespace and name; `seconds` by step of pod_start.STEPS."""

    workload: tuple[int, str, str]
    instance_type: str
    created_at: datetime
    ready_at: datetime
    seconds: Mapping[str, int]


def list_starts(workloads: Collection[tuple[int, str, str]]) -> list[Start]:
    """Return the starts, newest first, including pods that are gone, without pods that were restarted before."""
    rows = (
        Pod.objects.filter(
            cluster_id__in={cluster for cluster, _, _ in workloads},
            namespace__in={namespace for _, namespace, _ in workloads},
            workload__name__in={name for _, _, name in workloads},
            ready_at__isnull=False,
            node__isnull=False,
        )
        .exclude(start_seconds={})
        .order_by("-ready_at")
        .values_list(
            "cluster_id",
            "namespace",
            "workload__name",
            "node__instance_type",
            "created_at",
            "ready_at",
            "start_seconds",
        )
    )
    return [
        Start((cluster, namespace, name), instance_type, created_at, ready_at, seconds)
        for cluster, namespace, name, instance_type, created_at, ready_at, seconds in rows[
            :_MAX_STARTS
        ]
        if (cluster, namespace, name) in workloads and ready_at is not None
    ]
