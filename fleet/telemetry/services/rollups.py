"""Roll samples up into minutes and minutes into hours. Idempotent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, Q, Sum, Window
from django.db.models.functions import Lag, Lead, TruncMinute

from fleet.gpus.domain.intervals import HOUR, hour_of, minute_of
from fleet.models import MetricSample, WorkloadHour, WorkloadMinute
from fleet.telemetry.domain.counters import COUNTER_NAMES, LONGEST_GAP, Increase, increases, total
from fleet.telemetry.selectors.requests import reading_of
from portal.core import clock

# Each run repeats this much, which makes up for a failed run.
_LOOK_BACK = timedelta(minutes=3)
_SUMS = (*COUNTER_NAMES, "observed_ms", "gpu_busy_ms")
_KEPT_FIELDS = (*_SUMS, "gpu_busy_source")
# Retention: all readings, then one per minute, then none; minute sums last longest.
# The first covers the hour before a rollout's step, from which its tests learn how steady stable is.
_KEEP_ALL = timedelta(minutes=65)
_KEEP_SOME = timedelta(hours=48)
_KEEP_MINUTES = timedelta(days=35)


def roll_up(*, workload_ids: Collection[int], at: datetime) -> None:
    start = minute_of(at - _LOOK_BACK)
    minutes = list(_minutes(workload_ids, start))
    WorkloadMinute.objects.bulk_create(
        minutes,
        update_conflicts=True,
        unique_fields=["workload", "start"],
        update_fields=_KEPT_FIELDS,
    )
    for hour in sorted({hour_of(start), hour_of(at)}):
        _hours(workload_ids, hour)


def thin(*, at: datetime | None = None) -> int:
    """Delete old samples; return how many.

    Counters only grow, so one reading per minute keeps every sum exact. Also kept: a pod's first
    reading, from which sums start, and the last one before a restart, which is the only one with the
    counts until then.
    """
    now = at or clock.now()
    old = MetricSample.objects.filter(at__lt=now - _KEEP_ALL)
    ordered = old.annotate(
        minute=TruncMinute("at"),
        previous=Window(Lag("pk"), partition_by="pod_id", order_by="at"),
        next_success=Window(Lead("request_success"), partition_by="pod_id", order_by="at"),
        next_minute=Window(Lead(TruncMinute("at")), partition_by="pod_id", order_by="at"),
    )
    superfluous = ordered.filter(
        previous__isnull=False, next_minute=F("minute"), next_success__gte=F("request_success")
    ).values_list("pk", flat=True)
    thinned, _ = MetricSample.objects.filter(pk__in=list(superfluous)).delete()
    expired, _ = MetricSample.objects.filter(at__lt=now - _KEEP_SOME).delete()
    WorkloadMinute.objects.filter(start__lt=now - _KEEP_MINUTES).delete()
    return thinned + expired


def _minutes(workload_ids: Collection[int], start: datetime) -> Iterator[WorkloadMinute]:
    samples = (
        MetricSample.objects.filter(
            Q(at__gte=start - LONGEST_GAP), pod__workload_id__in=workload_ids
        )
        .select_related("pod")
        .order_by("pod_id", "at")
    )
    by_pod: dict[int, list[MetricSample]] = defaultdict(list)
    for sample in samples:
        by_pod[sample.pod_id].append(sample)
    by_minute: dict[tuple[int, datetime], list[Increase]] = defaultdict(list)
    for of_pod in by_pod.values():
        pod = of_pod[0].pod
        for increase in increases([reading_of(s) for s in of_pod], ready_at=pod.ready_at):
            if increase.at >= start and pod.workload_id is not None:
                by_minute[pod.workload_id, minute_of(increase.at)].append(increase)
    for (workload_id, minute), pod_increases in by_minute.items():
        yield WorkloadMinute(
            workload_id=workload_id,
            start=minute,
            observed_ms=sum(increase.observed_ms for increase in pod_increases),
            gpu_busy_ms=sum(increase.busy_ms for increase in pod_increases),
            gpu_busy_source=max(increase.busy_source for increase in pod_increases),
            **asdict(total(pod_increases)),
        )


def _hours(workload_ids: Collection[int], hour: datetime) -> None:
    of_hour = WorkloadMinute.objects.filter(
        workload_id__in=workload_ids, start__gte=hour, start__lt=hour + HOUR
    )
    rows = (
        of_hour.values("workload")
        .annotate(
            source=Max("gpu_busy_source"),
            **{f"sum_{name}": Sum(name) for name in _SUMS},
        )
        .order_by()
    )
    WorkloadHour.objects.bulk_create(
        [
            WorkloadHour(
                workload_id=row["workload"],
                start=hour,
                gpu_busy_source=row["source"],
                **{name: row[f"sum_{name}"] for name in _SUMS},
            )
            for row in map(dict[str, Any], rows)
        ],
        update_conflicts=True,
        unique_fields=["workload", "start"],
        update_fields=_KEPT_FIELDS,
    )
