"""Traffic of many workloads: by hour over days, and of the last hour."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from django.db.models import Count, Sum

from fleet.gpus.domain.intervals import HOUR, minute_of
from fleet.models import Workload, WorkloadHour, WorkloadMinute

_SUMS: Final = (
    "request_success",
    "request_failure",
    "request_duration_us",
    "gpu_busy_ms",
    "observed_ms",
)


@dataclass(frozen=True, slots=True)
class WorkloadTraffic:
    """The traffic of a workload. `seconds` are those of the minutes in which a pod was read; 3600 for a whole hour.
    `observed_ms` is pod time.
    """

    seconds: int
    success: int
    failure: int
    duration_us: int
    busy_ms: int
    observed_ms: int


@dataclass(frozen=True, slots=True)
class HourlyWorkload:
    cluster_id: int
    namespace: str
    name: str


def find(keys: Collection[HourlyWorkload]) -> dict[HourlyWorkload, int]:
    """Find the ids of the workloads that fleet knows."""
    rows = Workload.objects.filter(
        namespace__in={key.namespace for key in keys}, name__in={key.name for key in keys}
    ).values_list("cluster_id", "namespace", "name", "pk")
    known = {HourlyWorkload(cluster, namespace, name): pk for cluster, namespace, name, pk in rows}
    return {key: known[key] for key in keys if key in known}


def by_hour(
    workload_ids: Collection[int], *, start: datetime, hours: int
) -> Mapping[int, Mapping[int, WorkloadTraffic]]:
    """Return the traffic by workload id, then by the index of the hour from `start`. Hours without readings are
    left out.
    """
    rows = WorkloadHour.objects.filter(
        workload_id__in=workload_ids,
        start__gte=start,
        start__lt=start + hours * HOUR,
        observed_ms__gt=0,
    ).values_list("workload_id", "start", *_SUMS)
    known: dict[int, dict[int, WorkloadTraffic]] = {}
    for workload_id, at, *sums in rows:
        index = int((at - start) / HOUR)
        known.setdefault(workload_id, {})[index] = WorkloadTraffic(3600, *sums)
    return known


def since(workload_ids: Collection[int], *, start: datetime) -> Mapping[int, WorkloadTraffic]:
    """Return the traffic by workload id, over the minutes from `start` on."""
    rows = (
        WorkloadMinute.objects.filter(
            workload_id__in=workload_ids, start__gte=minute_of(start), observed_ms__gt=0
        )
        .values("workload_id")
        .annotate(minutes=Count("start"), **{f"sum_{name}": Sum(name) for name in _SUMS})
        .order_by()
    )
    return {row["workload_id"]: _traffic(row) for row in map(dict[str, Any], rows)}


def _traffic(row: Mapping[str, Any]) -> WorkloadTraffic:
    sums = (row[f"sum_{name}"] for name in _SUMS)
    return WorkloadTraffic(60 * row["minutes"], *sums)
