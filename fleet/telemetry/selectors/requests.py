"""Requests, latency and errors of workloads, from the counters of their model servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet, Sum

from fleet.gpus.domain.intervals import minute_of
from fleet.models import MetricSample, WorkloadMinute
from fleet.telemetry.domain import histograms
from fleet.telemetry.domain.counters import (
    COUNTER_NAMES,
    FRESH,
    LONGEST_GAP,
    CounterSums,
    Increase,
    LanguageStats,
    PodReading,
    ServingStats,
    first_token_p95_ms,
    increases,
    mean_ms,
    ratio,
    source_label,
    total,
)
from fleet.telemetry.selectors.request_counts import RequestCounts, sum_increases
from portal.core import clock

P95_SOURCE = "Triton summary, slowest replica"
# Gauges older than this are not current: what Prometheus scrapes each 30 s is 45 s old when its turn comes.
_CURRENT = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class MinutePoint:
    """One minute, summed over some workloads; None where the divisor is 0."""

    at: datetime
    requests_per_second: float
    error_ratio: float | None
    mean_latency_ms: float | None
    queue_ms: float | None
    input_ms: float | None
    compute_ms: float | None
    output_ms: float | None
    busy_ratio: float | None
    time_to_first_token_ms: float | None = None
    generation_tokens_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class PodReadings:
    ready_at: datetime | None
    readings: list[PodReading]


# A pod with its increases in the period.
ObservedPod = tuple[PodReadings, list[Increase]]


def counts_since(*, cluster_id: int, namespace: str, name: str, since: datetime) -> RequestCounts:
    """Count the requests to the workload's current and former pods after `since`."""
    pods = _readings(cluster_id, namespace, [name], since)
    pod_increases = [increase for pod in pods for increase in _increases_since(pod, since)]
    latest = [reading.at for pod in pods for reading in pod.readings if reading.at >= since]
    return sum_increases(
        pod_increases,
        latest_at=max(latest, default=None),
        begins_at=min((_begins_at(pod, since) for pod in pods), default=None),
    )


def stats(
    *, cluster_id: int, namespace: str, names: Sequence[str], seconds: int = 300
) -> ServingStats | None:
    """Return the statistics over the last `seconds`. None if no pod of these workloads was read in that time."""
    now = clock.now()
    since = now - timedelta(seconds=seconds)
    pods = _readings(cluster_id, namespace, names, since)
    per_pod = [(pod, _increases_since(pod, since)) for pod in pods]
    observed_pods = [(pod, pod_increases) for pod, pod_increases in per_pod if pod_increases]
    if not observed_pods:
        return None
    pod_increases = [increase for _, increments in observed_pods for increase in increments]
    last = [pod.readings[-1] for pod, _ in observed_pods]
    current = [reading for reading in last if now - reading.at <= _CURRENT]
    counters = total(pod_increases)
    slowest = [r.request_p95_us for r in current if r.request_p95_us is not None]
    pending = [r.pending_requests for r in current if r.pending_requests is not None]
    observed = sum(increase.observed_ms for increase in pod_increases)
    success = counters.request_success
    return ServingStats(
        seconds=seconds,
        requests_per_second=_rate(observed_pods, ("request_success", "request_failure")),
        error_ratio=ratio(counters.request_failure, success + counters.request_failure),
        mean_latency_ms=mean_ms(counters.request_duration_us, success),
        queue_ms=mean_ms(counters.queue_duration_us, success),
        input_ms=mean_ms(counters.compute_input_us, success),
        compute_ms=mean_ms(counters.compute_infer_us, success),
        output_ms=mean_ms(counters.compute_output_us, success),
        mean_batch_size=ratio(counters.inference_count, counters.execution_count),
        p95_ms=max(slowest) / 1000 if slowest else None,
        p95_source=P95_SOURCE if slowest else "",
        busy_ratio=ratio(sum(increase.busy_ms for increase in pod_increases), observed),
        busy_source=_sources(pod_increases),
        pending_requests=sum(pending) if pending else None,
        success=success,
        failure=counters.request_failure,
        inferences=counters.inference_count,
        pods=len(observed_pods),
        latest_at=max(reading.at for reading in last),
        language=_language_stats(observed_pods, counters, current),
    )


def _language_stats(
    observed_pods: Sequence[ObservedPod], counters: CounterSums, current: Sequence[PodReading]
) -> LanguageStats | None:
    """Return the statistics of language models. None if no pod ever generated a token and none runs a language
    model's own server.
    """
    used = [reading.kv_cache_usage for reading in current if reading.kv_cache_usage is not None]
    running = [r.running_requests for r in current if r.running_requests is not None]
    last = [pod.readings[-1] for pod, _ in observed_pods]
    if not any(r.running_requests is not None or r.counters.generation_tokens for r in last):
        return None
    return LanguageStats(
        prompt_tokens=counters.prompt_tokens,
        generation_tokens=counters.generation_tokens,
        prompt_tokens_per_second=_rate(observed_pods, ("prompt_tokens",)),
        generation_tokens_per_second=_rate(observed_pods, ("generation_tokens",)),
        time_to_first_token_ms=mean_ms(counters.first_token_us, counters.first_tokens),
        time_to_first_token_p95_ms=first_token_p95_ms(
            increase for _, pod_increases in observed_pods for increase in pod_increases
        ),
        inter_token_ms=mean_ms(counters.later_token_us, counters.later_tokens),
        kv_cache_usage=max(used, default=None),
        running_requests=sum(running) if running else None,
        preemptions=counters.preemptions,
    )


def series(
    *,
    cluster_id: int,
    namespace: str,
    names: Sequence[str],
    start: datetime,
    end: datetime | None = None,
) -> list[MinutePoint]:
    """Return one point for each observed minute. Minutes without a point are unknown."""
    now = clock.now()
    rows = (
        WorkloadMinute.objects.filter(
            workload__cluster_id=cluster_id,
            workload__namespace=namespace,
            workload__name__in=names,
            start__gte=minute_of(start),
            start__lt=end or now,
            observed_ms__gt=0,
        )
        .values("start")
        .annotate(
            observed=Sum("observed_ms"),
            busy=Sum("gpu_busy_ms"),
            **{f"sum_{name}": Sum(name) for name in COUNTER_NAMES},
        )
        .order_by("start")
    )
    return [
        _point(
            row["start"],
            CounterSums(*(row[f"sum_{name}"] for name in COUNTER_NAMES)),
            observed_ms=row["observed"],
            busy_ms=row["busy"],
            now=now,
        )
        for row in map(dict[str, Any], rows)
    ]


def _point(
    at: datetime, counters: CounterSums, *, observed_ms: int, busy_ms: int, now: datetime
) -> MinutePoint:
    elapsed = min(60.0, max(1.0, (now - at).total_seconds()))
    success, failure = counters.request_success, counters.request_failure
    return MinutePoint(
        at=at,
        requests_per_second=(success + failure) / elapsed,
        error_ratio=ratio(failure, success + failure),
        mean_latency_ms=mean_ms(counters.request_duration_us, success),
        queue_ms=mean_ms(counters.queue_duration_us, success),
        input_ms=mean_ms(counters.compute_input_us, success),
        compute_ms=mean_ms(counters.compute_infer_us, success),
        output_ms=mean_ms(counters.compute_output_us, success),
        busy_ratio=ratio(busy_ms, observed_ms),
        time_to_first_token_ms=mean_ms(counters.first_token_us, counters.first_tokens),
        generation_tokens_per_second=counters.generation_tokens / elapsed,
    )


def _samples(cluster_id: int, namespace: str, names: Sequence[str]) -> QuerySet[MetricSample]:
    return MetricSample.objects.filter(
        pod__cluster_id=cluster_id, pod__namespace=namespace, pod__workload__name__in=names
    )


def _readings(
    cluster_id: int, namespace: str, names: Sequence[str], since: datetime
) -> list[PodReadings]:
    """Return the readings since `since`, with the last one before it, from which increases start."""
    samples = _samples(cluster_id, namespace, names).filter(at__gte=since - LONGEST_GAP)
    by_pod: dict[int, PodReadings] = {}
    for sample in samples.select_related("pod").order_by("pod_id", "at"):
        pod = by_pod.setdefault(sample.pod_id, PodReadings(sample.pod.ready_at, []))
        pod.readings.append(build_reading(sample))
    return list(by_pod.values())


def build_reading(sample: MetricSample) -> PodReading:
    return PodReading(
        at=sample.at,
        counters=CounterSums(*(getattr(sample, name) for name in COUNTER_NAMES)),
        gpu_utilisation=sample.gpu_utilisation,
        pending_requests=sample.pending_requests,
        request_p95_us=sample.request_p95_us,
        running_requests=sample.running_requests,
        kv_cache_usage=sample.kv_cache_usage,
        first_token_times=histograms.from_json(sample.first_token_times) or None,
        order=sample.pk,
    )


def _increases_since(pod: PodReadings, since: datetime) -> list[Increase]:
    before = [reading for reading in pod.readings if reading.at < since]
    after = [reading for reading in pod.readings if reading.at >= since]
    if before:
        return increases([before[-1], *after], ready_at=None)
    return increases(after, ready_at=pod.ready_at)


def _begins_at(pod: PodReadings, since: datetime) -> datetime:
    before = [reading.at for reading in pod.readings if reading.at < since]
    if before:
        return before[-1]
    first, ready_at = pod.readings[0].at, pod.ready_at
    is_counted_in_full = ready_at is not None and ready_at <= first <= ready_at + FRESH
    return ready_at if ready_at is not None and is_counted_in_full else first


def _rate(observed_pods: Sequence[ObservedPod], names: Sequence[str]) -> float | None:
    """Sum of the pods' own rates, so that a pod that started late does not lower the total."""
    rates = []
    for _, pod_increases in observed_pods:
        span = sum(increase.observed_ms for increase in pod_increases)
        counters = total(pod_increases)
        if span:
            rates.append(sum(getattr(counters, name) for name in names) * 1000 / span)
    return sum(rates) if rates else None


def _sources(pod_increases: Sequence[Increase]) -> str:
    return " and ".join(sorted({source_label(increase.busy_source) for increase in pod_increases}))
