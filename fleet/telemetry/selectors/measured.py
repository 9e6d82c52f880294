"""Measurements of workloads: GPU memory, GPU time per inference, start time."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Q, Sum

from fleet.gpus.domain.intervals import HOUR
from fleet.models import Pod, Workload, WorkloadHour
from fleet.telemetry.selectors.current import WorkloadKey
from portal.core import clock

_SPEED_DAYS = 30
_STARTS = 50
# Fewer are not representative: the first requests of a process are slow.
_ENOUGH_INFERENCES = 1000


@dataclass(frozen=True, slots=True)
class Stood:
    """The time in which a workload stood for one revision. `start` and `end` are None where no other had its name
    before and after.
    """

    key: WorkloadKey
    start: datetime | None = None
    end: datetime | None = None

    def holds(self, at: datetime) -> bool:
        return (self.start is None or self.start <= at) and (self.end is None or at < self.end)


@dataclass(frozen=True, slots=True)
class MemoryPeak:
    """The highest GPU memory use of a workload. `since` is when the workload was registered for the revision of
    which it was measured.
    """

    mib: int
    since: datetime


def memory_peaks(keys: Collection[WorkloadKey]) -> dict[WorkloadKey, MemoryPeak]:
    """Return the highest memory use of a GPU that a pod of the workload had to itself. Workloads without a
    measurement are left out.
    """
    if not keys:
        return {}
    rows = Workload.objects.filter(
        _any_of([Stood(key) for key in keys]), gpu_memory_peak_mib__isnull=False
    )
    peaks = rows.values_list("cluster_id", "namespace", "name", "gpu_memory_peak_mib", "created_at")
    return {WorkloadKey(*row[:3]): MemoryPeak(row[3] or 0, row[4]) for row in peaks}


def busy_us_per_inference(stood: Collection[Stood]) -> int | None:
    """Return the GPU time of one inference over the last 30 days. None if too little was observed."""
    if not stood:
        return None
    rows = WorkloadHour.objects.filter(
        _any_of(stood, "workload__", began="start", lasts=HOUR),
        start__gte=clock.now() - timedelta(days=_SPEED_DAYS),
        is_demo=False,
    )
    sums = rows.aggregate(busy=Sum("gpu_busy_ms"), inferences=Sum("inference_count"))
    if (sums["inferences"] or 0) < _ENOUGH_INFERENCES or not sums["busy"]:
        return None
    return int(sums["busy"]) * 1000 // int(sums["inferences"])


def start_seconds(stood: Collection[Stood]) -> list[int]:
    """Return the seconds from creation to ready of the latest pods, including the wait for a node."""
    if not stood:
        return []
    rows = Pod.objects.filter(
        _any_of(stood, "workload__", began="created_at"), ready_at__isnull=False
    ).order_by("-created_at")
    pairs = rows.values_list("created_at", "ready_at")[:_STARTS]
    return [max(0, round((ready - created).total_seconds())) for created, ready in pairs if ready]


def _any_of(
    stood: Collection[Stood], prefix: str = "", *, began: str = "", lasts: timedelta = timedelta()
) -> Q:
    """Return a condition that matches rows of these workloads that are entirely within their times. Matches every
    row if there are none.
    """
    matches = Q()
    names: dict[tuple[int, str], list[str]] = {}
    for one in stood:
        key = one.key
        if one.start is None and one.end is None:
            names.setdefault((key.cluster_id, key.namespace), []).append(key.name)
            continue
        of_one = _named(prefix, key.cluster_id, key.namespace, [key.name])
        if one.start is not None:
            of_one &= Q(**{f"{began}__gte": one.start})
        if one.end is not None:
            of_one &= Q(**{f"{began}__lt": one.end - lasts})
        matches |= of_one
    for (cluster_id, namespace), listed in names.items():
        matches |= _named(prefix, cluster_id, namespace, listed)
    return matches


def _named(prefix: str, cluster_id: int, namespace: str, names: list[str]) -> Q:
    return Q(
        **{
            f"{prefix}cluster_id": cluster_id,
            f"{prefix}namespace": namespace,
            f"{prefix}name__in": names,
        }
    )
