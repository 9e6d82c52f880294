"""Measurements of workloads: GPU memory, GPU time per inference, start time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta

from django.db.models import Sum

from fleet.models import Pod, Workload, WorkloadHour
from portal.core import clock

_SPEED_DAYS = 30
_STARTS = 50
# Fewer are not representative: the first requests of a process are slow.
_ENOUGH_INFERENCES = 1000


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The highest memory use of a GPU that a pod of the workload had to itself."""

    workload_name: str
    mib: int


def memory_peaks(*, namespace: str, names: Collection[str]) -> list[MemoryPeak]:
    """Peaks on any cluster, without workloads that were never measured."""
    rows = Workload.objects.filter(
        namespace=namespace, name__in=names, gpu_memory_peak_mib__isnull=False
    )
    pairs = rows.values_list("name", "gpu_memory_peak_mib")
    return [MemoryPeak(name, mib) for name, mib in pairs if mib is not None]


def busy_us_per_inference(*, namespace: str, names: Collection[str]) -> int | None:
    """GPU time of one inference over the last 30 days; None when too little was observed."""
    rows = WorkloadHour.objects.filter(
        workload__namespace=namespace,
        workload__name__in=names,
        start__gte=clock.now() - timedelta(days=_SPEED_DAYS),
        is_demo=False,
    )
    sums = rows.aggregate(busy=Sum("gpu_busy_ms"), inferences=Sum("inference_count"))
    if (sums["inferences"] or 0) < _ENOUGH_INFERENCES or not sums["busy"]:
        return None
    return int(sums["busy"]) * 1000 // int(sums["inferences"])


def start_seconds(*, namespace: str, names: Collection[str]) -> list[int]:
    """Seconds from creation to ready of the latest pods, including the wait for a node."""
    rows = Pod.objects.filter(
        workload__namespace=namespace, workload__name__in=names, ready_at__isnull=False
    ).order_by("-created_at")
    pairs = rows.values_list("created_at", "ready_at")[:_STARTS]
    return [max(0, round((ready - created).total_seconds())) for created, ready in pairs if ready]
