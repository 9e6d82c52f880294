"""Roll samples up into minutes and minutes into hours. Idempotent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from django.db.models import F, Max, OuterRef, Subquery, Sum, Window
from django.db.models.functions import Lag, Lead, TruncMinute

from fleet.gpus.domain.intervals import HOUR, hour_of, minute_of
from fleet.models import MetricSample, Pod, WorkloadHour, WorkloadMinute
from fleet.telemetry.domain.counters import (
    COUNTER_NAMES,
    LONGEST_GAP,
    CounterSums,
    Increase,
    PodReading,
    increases,
    total,
)
from portal.core import clock

# A pod, its workload and when it became ready.
_PodKey = tuple[int, int, datetime | None]
# What is rolled up at least of a workload whose last minutes were not.
_LOOK_BACK = timedelta(minutes=3)
_MINUTE = timedelta(minutes=1)
_SUMS = (*COUNTER_NAMES, "observed_ms", "gpu_busy_ms")
_KEPT_FIELDS = (*_SUMS, "gpu_busy_source")
# Retention: all readings, then one per minute, then none; minute sums last longest.
# The first covers the hour before a rollout's step, from which its tests learn how steady stable is.
_KEEP_ALL = timedelta(minutes=65)
_KEEP_SOME = timedelta(hours=48)
_KEEP_MINUTES = timedelta(days=35)


def roll_up(*, workload_ids: Collection[int], at: datetime) -> None:
    minutes = [
        minute
        for start, ids in _starts(workload_ids, at).items()
        for minute in _minutes(ids, start)
    ]
    WorkloadMinute.objects.bulk_create(
        minutes,
        update_conflicts=True,
        unique_fields=["workload", "start"],
        update_fields=_KEPT_FIELDS,
    )
    for hour in sorted({hour_of(minute_of(at - _LOOK_BACK)), hour_of(at)}):
        _hours(workload_ids, hour)


def _starts(workload_ids: Collection[int], at: datetime) -> dict[datetime, list[int]]:
    """Return the workloads by the time from which they are rolled up: the minute before their last one. A failed
    run left nothing after that minute, and a run that takes longer than this one writes its readings within a
    minute.
    """
    first = minute_of(at - _LOOK_BACK)
    rows = WorkloadMinute.objects.filter(workload__in=workload_ids, start__gt=first)
    last = dict(rows.values_list("workload").annotate(Max("start")).order_by())
    starts: dict[datetime, list[int]] = defaultdict(list)
    for pk in workload_ids:
        starts[last[pk] - _MINUTE if pk in last else first].append(pk)
    return starts


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


def _readings(workload_ids: Collection[int], start: datetime) -> dict[_PodKey, list[PodReading]]:
    """Return the readings of each pod from `start` on, with the last one before."""
    samples = MetricSample.objects.filter(pod__workload__in=workload_ids, at__gte=start)
    before = MetricSample.objects.filter(
        pod=OuterRef("pk"), at__lt=start, at__gte=start - LONGEST_GAP
    )
    newest = Subquery(before.order_by("-at").values("pk")[:1])
    pods = Pod.objects.filter(workload__in=workload_ids).order_by()
    last = MetricSample.objects.filter(pk__in=pods.values_list(newest))
    by_pod: dict[_PodKey, list[PodReading]] = defaultdict(list)
    for rows in (last, samples):
        # Not as objects: there are thousands of them every few seconds.
        for (
            pk,
            pod_id,
            workload_id,
            ready_at,
            at,
            utilisation,
            running,
            *counters,
        ) in rows.values_list(
            *("pk", "pod", "pod__workload", "pod__ready_at", "at", "gpu_utilisation"),
            *("running_requests", *COUNTER_NAMES),
        ):
            by_pod[pod_id, workload_id, ready_at].append(
                PodReading(
                    at,
                    CounterSums(*counters),
                    gpu_utilisation=utilisation,
                    running_requests=running,
                    order=pk,
                )
            )
    return by_pod


def _minutes(workload_ids: Collection[int], start: datetime) -> Iterator[WorkloadMinute]:
    by_minute: dict[tuple[int, datetime], list[Increase]] = defaultdict(list)
    for (_, workload_id, ready_at), readings in _readings(workload_ids, start).items():
        for increase in increases(readings, ready_at=ready_at):
            if increase.at >= start:
                by_minute[workload_id, minute_of(increase.at)].append(increase)
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
