"""Good and bad requests of workloads by the minute, for standing targets. A minute that was not read is left out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from django.db.models import F, Sum

from fleet.gpus.domain.intervals import minute_of
from fleet.models import MetricSample, WorkloadMinute
from fleet.telemetry.domain.counters import LONGEST_GAP, Increase, PodReading, increases
from fleet.telemetry.domain.histograms import Histogram
from fleet.telemetry.selectors.requests import build_reading


@dataclass(frozen=True, slots=True)
class MinuteCount:
    workload_id: int
    minute: datetime
    total: int
    bad: int


# Requests of one increase and how many of them were bad; None: not known.
Judge = Callable[[PodReading, Increase], tuple[int, int] | None]


def without_errors(workload_ids: Collection[int], *, start: datetime) -> list[MinuteCount]:
    rows = (
        WorkloadMinute.objects.filter(
            workload_id__in=workload_ids, start__gte=minute_of(start), observed_ms__gt=0
        )
        .values_list("workload_id", "start")
        .annotate(
            total=Sum(F("request_success") + F("request_failure")), bad=Sum("request_failure")
        )
        .order_by()
    )
    return [MinuteCount(*row) for row in rows]


def first_token_within(
    workload_ids: Collection[int], *, start: datetime, threshold_ms: Mapping[int, int]
) -> list[MinuteCount]:
    """Count the requests per minute, and as bad those whose first token came after the `threshold_ms` of their
    workload, by the histogram of each pod.
    """

    def judge_with(limit_ms: int) -> Judge:
        return lambda _, increase: _slow_tokens(increase, limit_ms)

    return _counts(workload_ids, start, {pk: judge_with(ms) for pk, ms in threshold_ms.items()})


def p95_within(
    workload_ids: Collection[int], *, start: datetime, threshold_ms: Mapping[int, int]
) -> list[MinuteCount]:
    """Count the requests per minute. All requests of a reading count as bad if its p95 is above the limit: a
    summary has no counts.
    """

    def judge_with(limit_ms: int) -> Judge:
        return lambda reading, increase: _in_slow_reading(reading, increase, limit_ms)

    return _counts(workload_ids, start, {pk: judge_with(ms) for pk, ms in threshold_ms.items()})


def slow_tokens(times: Histogram, limit_ms: int) -> tuple[int, int]:
    """Count the requests, and those whose first token came later than the largest bound within the limit."""
    total = max(times.values(), default=0)
    within = [count for bound, count in times.items() if bound * 1000 <= limit_ms]
    return total, total - max(within, default=0)


def _slow_tokens(increase: Increase, limit_ms: int) -> tuple[int, int] | None:
    if increase.first_token_times is None:
        return None
    return slow_tokens(increase.first_token_times, limit_ms)


def _in_slow_reading(
    reading: PodReading, increase: Increase, limit_ms: int
) -> tuple[int, int] | None:
    requests = increase.counters.request_success
    if not requests:
        return 0, 0
    if reading.request_p95_us is None:
        return None
    return requests, requests if reading.request_p95_us > 1000 * limit_ms else 0


def _counts(
    workload_ids: Collection[int], start: datetime, judges: Mapping[int, Judge]
) -> list[MinuteCount]:
    first = minute_of(start)
    samples = (
        MetricSample.objects.filter(at__gte=first - LONGEST_GAP, pod__workload_id__in=workload_ids)
        .select_related("pod")
        .order_by("pod_id", "at")
    )
    sums: dict[tuple[int, datetime], tuple[int, int]] = {}
    for _, rows in groupby(samples, key=lambda sample: sample.pod_id):
        of_pod = list(rows)
        pod = of_pod[0].pod
        if pod.workload_id is None:
            continue
        readings = {sample.at: build_reading(sample) for sample in of_pod}
        for increase in increases(list(readings.values()), ready_at=pod.ready_at):
            if increase.at < first or not increase.observed_ms:
                continue
            judged = judges[pod.workload_id](readings[increase.at], increase)
            if judged is not None:
                key = pod.workload_id, minute_of(increase.at)
                total, bad = sums.get(key, (0, 0))
                sums[key] = total + judged[0], bad + judged[1]
    return [MinuteCount(*key, *counts) for key, counts in sorted(sums.items())]
