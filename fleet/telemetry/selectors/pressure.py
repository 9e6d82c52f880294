"""Queues, GPU memory and idle GPUs of many workloads, in a constant number of queries."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from django.db.models import Avg, Count, F, Max, Min, Sum

from fleet.gpus.domain.shares import GPU_PPM
from fleet.models import GpuLease, MetricSample, Pod, WorkloadHour


def queues(workload_ids: Collection[int], *, since: datetime) -> dict[int, tuple[int, float, int]]:
    """Return the lowest and mean number of waiting requests of a pod, and the number of readings."""
    rows = (
        MetricSample.objects.filter(
            at__gte=since, pod__workload_id__in=workload_ids, pending_requests__isnull=False
        )
        .values_list("pod__workload_id")
        .annotate(Min("pending_requests"), Avg("pending_requests"), Count("pk"))
        .order_by()
    )
    return {pk: (lowest, float(mean), count) for pk, lowest, mean, count in rows}


def memory(workload_ids: Collection[int]) -> dict[int, tuple[int, int]]:
    """Return the peak and size of the GPU in MiB, of workloads whose peak was measured. A peak above the size was
    measured on a larger GPU and says nothing about this one.
    """
    rows = (
        Pod.objects.filter(
            workload_id__in=workload_ids,
            workload__gpu_memory_peak_mib__isnull=False,
            node__gpu_memory_mib__gte=F("workload__gpu_memory_peak_mib"),
            gone_at=None,
        )
        .values_list("workload_id", "workload__gpu_memory_peak_mib")
        .annotate(Max("node__gpu_memory_mib"))
        .order_by()
    )
    return {pk: (peak, size) for pk, peak, size in rows}


def count_held_gpus(workload_ids: Collection[int]) -> dict[int, float]:
    rows = (
        GpuLease.objects.filter(workload_id__in=workload_ids, ended_at=None)
        .values_list("workload_id")
        .annotate(Sum("share_ppm"))
        .order_by()
    )
    return {pk: ppm / GPU_PPM for pk, ppm in rows}


def busy(
    workload_ids: Collection[int], *, start: datetime, end: datetime
) -> dict[int, tuple[int, float]]:
    """Return the hours in which a pod was read for half an hour at least, and the part of that time a GPU was busy."""
    rows = (
        WorkloadHour.objects.filter(
            workload_id__in=workload_ids,
            start__gte=start,
            start__lt=end,
            observed_ms__gte=1_800_000,
        )
        .values_list("workload_id")
        .annotate(Count("pk"), Sum("gpu_busy_ms"), Sum("observed_ms"))
        .order_by()
    )
    return {pk: (hours, ms / observed) for pk, hours, ms, observed in rows}
