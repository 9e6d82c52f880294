"""Requests of a workload in consecutive blocks of time."""

from __future__ import annotations

from datetime import datetime, timedelta

from fleet.models import MetricSample
from fleet.telemetry.domain.counters import (
    LONGEST_GAP,
    Counters,
    Increase,
    Reading,
    increases,
    total,
)
from fleet.telemetry.selectors.requests import RequestCounts, reading_of


def blocks(
    *, cluster_id: int, namespace: str, name: str, since: datetime, until: datetime, seconds: int
) -> list[RequestCounts]:
    """Counts of each block of `seconds` between two times that was observed, oldest first.

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
) -> list[list[Counters]]:
    """Increases of each pod of the workload in slots of so many seconds, from the first slot that any
    of them was read in.
    """
    count = int((until - since).total_seconds()) // seconds
    series = []
    for of_pod in _increases(cluster_id, namespace, name, since, until):
        row = [Counters()] * count
        for increase in of_pod:
            slot = int((increase.at - since).total_seconds()) // seconds
            if slot < count:
                row[slot] += increase.counters
        series.append(row)
    known = [slot for row in series for slot, sums in enumerate(row) if sums != Counters()]
    return [row[min(known) :] for row in series] if known else []


def _increases(
    cluster_id: int, namespace: str, name: str, since: datetime, until: datetime
) -> list[list[Increase]]:
    """Of each pod."""
    samples = MetricSample.objects.filter(
        pod__cluster_id=cluster_id,
        pod__namespace=namespace,
        pod__workload__name=name,
        at__gte=since - LONGEST_GAP,
        at__lte=until,
    )
    by_pod: dict[int, list[Reading]] = {}
    for sample in samples.order_by("pod_id", "at"):
        by_pod.setdefault(sample.pod_id, []).append(reading_of(sample))
    return [
        [increase for increase in increases(readings, ready_at=None) if increase.at >= since]
        for readings in by_pod.values()
    ]


def _counts(observed: list[Increase]) -> RequestCounts:
    counters = total(observed)
    return RequestCounts(
        success=counters.request_success,
        failure=counters.request_failure,
        inferences=counters.inference_count,
        observed_ms=sum(increase.observed_ms for increase in observed),
        latest_at=max(increase.at for increase in observed),
        duration_us=counters.request_duration_us,
        queue_us=counters.queue_duration_us,
        busy_ms=sum(increase.busy_ms for increase in observed),
        begins_at=min(
            increase.at - timedelta(milliseconds=increase.observed_ms) for increase in observed
        ),
    )
