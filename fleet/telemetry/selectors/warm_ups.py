"""Pods that have just got their first requests, and what they counted since."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, Min, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from fleet.models import MetricSample
from fleet.telemetry.domain.counters import (
    LONGEST_GAP,
    CounterSums,
    Increase,
    PodReading,
    increases,
    total,
)
from fleet.telemetry.selectors.current import WorkloadKey
from fleet.telemetry.selectors.requests import build_reading

_REQUESTS = F("request_success") + F("request_failure")


@dataclass(frozen=True, slots=True)
class WarmUpCounts:
    """The counts of pods while they warmed up."""

    counters: CounterSums
    busy_ms: int
    observed_ms: int


def first_requests(
    key: WorkloadKey, *, since: datetime, known: Collection[int]
) -> dict[int, datetime]:
    """Return when the pods that are not `known` yet first counted a request after `since`."""
    samples = _samples(key).exclude(pod_id__in=known)
    before = (
        MetricSample.objects.filter(pod=OuterRef("pod"), at__lt=since)
        .order_by("-at")
        .annotate(n=_REQUESTS)
        .values("n")[:1]
    )
    counted = samples.filter(at__gte=since).annotate(
        n=_REQUESTS, base=Coalesce(Subquery(before), 0)
    )
    rows = counted.filter(n__gt=F("base")).values("pod_id").annotate(first=Min("at")).order_by()
    return {row["pod_id"]: row["first"] for row in rows}


def counts_until(
    key: WorkloadKey, *, since: datetime, until: Mapping[int, datetime]
) -> WarmUpCounts:
    """Sum what each of the pods counted after `since` and before its time in `until`."""
    warming = {pod_id: at for pod_id, at in until.items() if at >= since}
    samples = _samples(key).filter(pod_id__in=warming, at__gte=since - LONGEST_GAP)
    by_pod: dict[int, list[MetricSample]] = {}
    for sample in samples.select_related("pod").order_by("pod_id", "at"):
        by_pod.setdefault(sample.pod_id, []).append(sample)
    counted = [
        increase
        for pod_id, rows in by_pod.items()
        for increase in _increases(rows, since)
        if increase.at < warming[pod_id]
    ]
    return WarmUpCounts(
        counters=total(counted),
        busy_ms=sum(increase.busy_ms for increase in counted),
        observed_ms=sum(increase.observed_ms for increase in counted),
    )


def _increases(rows: list[MetricSample], since: datetime) -> list[Increase]:
    readings: list[PodReading] = [build_reading(row) for row in rows]
    before = [reading for reading in readings if reading.at < since]
    after = [reading for reading in readings if reading.at >= since]
    if before:
        return increases([before[-1], *after], ready_at=None)
    return increases(after, ready_at=rows[0].pod.ready_at)


def _samples(key: WorkloadKey) -> QuerySet[MetricSample]:
    return MetricSample.objects.filter(
        pod__cluster_id=key.cluster_id,
        pod__namespace=key.namespace,
        pod__workload__name=key.name,
    )
