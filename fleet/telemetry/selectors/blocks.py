"""Requests of a workload in consecutive blocks of time."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.models import MetricSample, WorkloadMinute
from fleet.telemetry.domain.counters import (
    COUNTER_NAMES,
    LONGEST_GAP,
    CounterSums,
    Increase,
    PodReading,
    increases,
)
from fleet.telemetry.selectors.current import WorkloadKey
from fleet.telemetry.selectors.request_counts import RequestCounts, sum_increases
from fleet.telemetry.selectors.requests import build_reading


def blocks(
    *, cluster_id: int, namespace: str, name: str, since: datetime, until: datetime, seconds: int
) -> list[RequestCounts]:
    """Return the counts of each observed block of `seconds` between two times, oldest first.

    An increase counts in the block in which it was read.
    """
    by_block: dict[int, list[Increase]] = {}
    of_pods = _increases(cluster_id, namespace, name, since, until)
    for increase in (increase for of_pod in of_pods for increase in of_pod):
        index = int((increase.at - since).total_seconds() // seconds)
        by_block.setdefault(index, []).append(increase)
    return [_counts(by_block[index]) for index in sorted(by_block)]


def slots(
    *, cluster_id: int, namespace: str, name: str, since: datetime, until: datetime, seconds: int
) -> list[list[CounterSums]]:
    """Return the increases of each pod of the workload in slots of `seconds`, from the first slot that any of them
    was read in.
    """
    count = int((until - since).total_seconds()) // seconds
    series = []
    for of_pod in _increases(cluster_id, namespace, name, since, until):
        row = [CounterSums()] * count
        for increase in of_pod:
            slot = int((increase.at - since).total_seconds()) // seconds
            if slot < count:
                row[slot] += increase.counters
        series.append(row)
    known = [slot for row in series for slot, sums in enumerate(row) if sums != CounterSums()]
    return [row[min(known) :] for row in series] if known else []


def minutes(key: WorkloadKey, *, since: datetime, until: datetime) -> list[CounterSums]:
    """Return the counters of the workload, over all its pods, for each whole minute that was read, oldest first."""
    rows = WorkloadMinute.objects.filter(
        workload__cluster_id=key.cluster_id,
        workload__namespace=key.namespace,
        workload__name=key.name,
        start__gte=since,
        start__lte=until - timedelta(minutes=1),
        observed_ms__gt=0,
    )
    return [CounterSums(*sums) for sums in rows.order_by("start").values_list(*COUNTER_NAMES)]


def _increases(
    cluster_id: int, namespace: str, name: str, since: datetime, until: datetime
) -> list[list[Increase]]:
    """Return the increases of each pod."""
    samples = MetricSample.objects.filter(
        pod__cluster_id=cluster_id,
        pod__namespace=namespace,
        pod__workload__name=name,
        at__gte=since - LONGEST_GAP,
        at__lte=until,
    )
    by_pod: dict[int, list[PodReading]] = {}
    for sample in samples.order_by("pod_id", "at"):
        by_pod.setdefault(sample.pod_id, []).append(build_reading(sample))
    return [
        [increase for increase in increases(readings, ready_at=None) if increase.at >= since]
        for readings in by_pod.values()
    ]


def _counts(observed: list[Increase]) -> RequestCounts:
    begins = (increase.at - timedelta(milliseconds=increase.observed_ms) for increase in observed)
    return sum_increases(
        observed,
        latest_at=max(increase.at for increase in observed),
        begins_at=min(begins),
    )
