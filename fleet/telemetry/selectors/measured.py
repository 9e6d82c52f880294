"""Measurements of workloads: GPU memory, GPU time per inference, start time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta

from django.db.models import Q, Sum

from fleet.models import Pod, Workload, WorkloadHour
from fleet.telemetry.selectors.current import WorkloadKey
from portal.core import clock

_SPEED_DAYS = 30
_STARTS = 50
# Fewer are not representative: the first requests of a process are slow.
_ENOUGH_INFERENCES = 1000


def memory_peaks(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, int]:
    """The highest memory use in MiB of a GPU that a pod of the workload had to itself; not measured: left out."""
    if not keys:
        return {}
    rows = Workload.objects.filter(_any_of(keys), gpu_memory_peak_mib__isnull=False)
    peaks = rows.values_list("cluster_id", "namespace", "name", "gpu_memory_peak_mib")
    return {WorkloadKey(*row[:3]): row[3] or 0 for row in peaks}


def busy_us_per_inference(keys: Collection[WorkloadKey]) -> int | None:
    """GPU time of one inference over the last 30 days; None when too little was observed."""
    if not keys:
        return None
    rows = WorkloadHour.objects.filter(
        _any_of(keys, "workload__"),
        start__gte=clock.now() - timedelta(days=_SPEED_DAYS),
        is_demo=False,
    )
    sums = rows.aggregate(busy=Sum("gpu_busy_ms"), inferences=Sum("inference_count"))
    if (sums["inferences"] or 0) < _ENOUGH_INFERENCES or not sums["busy"]:
        return None
    return int(sums["busy"]) * 1000 // int(sums["inferences"])


def start_seconds(keys: Collection[WorkloadKey]) -> list[int]:
    """Seconds from creation to ready of the latest pods, including the wait for a node."""
    if not keys:
        return []
    rows = Pod.objects.filter(_any_of(keys, "workload__"), ready_at__isnull=False).order_by(
        "-created_at"
    )
    pairs = rows.values_list("created_at", "ready_at")[:_STARTS]
    return [max(0, round((ready - created).total_seconds())) for created, ready in pairs if ready]


def _any_of(keys: Collection[WorkloadKey], prefix: str = "") -> Q:
    """Without keys it is true of every row."""
    names: dict[tuple[int, str], list[str]] = {}
    for key in keys:
        names.setdefault((key.cluster_id, key.namespace), []).append(key.name)
    matches = Q()
    for (cluster_id, namespace), listed in names.items():
        matches |= Q(
            **{
                f"{prefix}cluster_id": cluster_id,
                f"{prefix}namespace": namespace,
                f"{prefix}name__in": listed,
            }
        )
    return matches
