"""Which histograms of Prometheus are read for a percentile, and what of them counts."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

from deployments.guards.domain import (
    histograms,
    prometheus_state,
)
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.prometheus_state import Sides, State
from deployments.guards.domain.promql import QueryTarget
from fleet.clusters.domain.prometheus import PrometheusUnreachable, QueryResult, Sample

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
AT_40 = PercentileGuard(metric="latency_p95", max=40.0)


def test_only_what_was_added_at_instances_known_before_is_counted() -> None:
    before = {"a": {10.0: 5.0, math.inf: 9.0}, "b": {10.0: 50.0, math.inf: 90.0}}
    now = {
        "a": {10.0: 7.0, math.inf: 12.0},
        "b": {10.0: 1.0, math.inf: 2.0},
        "new": {10.0: 100.0, math.inf: 100.0},
    }

    assert histograms.increase(before, now) == {10.0: 2, math.inf: 3}
    assert histograms.increase({}, now) == {}


SIDES = Sides(
    stable=QueryTarget("vision", "detector", "detector", "detector-r1", "detector-r1", 60),
    candidate=QueryTarget("vision", "detector", "detector", "detector-r2", "detector-r1", 60),
)


def buckets(total: int, slow: int) -> QueryResult:
    made = {"10.0": total - slow, "50.0": total - slow, "+Inf": total}
    return QueryResult(
        "vector",
        tuple(Sample(float(n), {"instance": "e", "le": le}) for le, n in made.items()),
    )


NOTHING = QueryResult("vector", ())


def taken(state: State, *reading: Any) -> State:
    stored = prometheus_state.from_json(state.to_json())
    return prometheus_state.take_histograms(stored, (AT_40,), list(reading), SIDES, AT)


def test_the_first_source_with_both_sides_is_kept_for_the_step() -> None:
    queries = prometheus_state.histogram_queries(State(), SIDES)
    assert len(queries) == 12
    assert 'destination_workload=~"detector-r1(-predictor)?"' in queries[0]

    half = taken(State(), buckets(5, 0), NOTHING, *[NOTHING] * 10)
    assert half.problem == histograms.NO_SOURCE
    first = taken(State(), buckets(5, 0), NOTHING, buckets(90, 1), buckets(10, 1), *[NOTHING] * 8)
    assert (first.source, first.problem) == ("envoy", "")
    assert not first.tests.candidate, "one reading has nothing to compare with"
    assert first.tests.before == {10.0: 89, 50.0: 89, math.inf: 90}
    assert len(prometheus_state.histogram_queries(first, SIDES)) == 2

    second = taken(first, buckets(190, 1), buckets(30, 4))
    assert second.tests.candidate == {10.0: 17, 50.0: 17, math.inf: 20}
    gone = taken(second, buckets(190, 1), NOTHING)
    assert gone.problem == (
        "Prometheus has no Envoy histogram at the gateway of the candidate revision"
    )
    away = taken(gone, PrometheusUnreachable("it does not answer"), buckets(1, 1))
    assert away.problem == "it does not answer"
    assert taken(away, buckets(290, 1), buckets(40, 4)).tests.candidate[math.inf] == 30
