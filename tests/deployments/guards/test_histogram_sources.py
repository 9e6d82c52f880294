"""Which histograms of Prometheus are read for a percentile, and what of them counts."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest

from deployments.guards.domain import histogram_sources, histogram_state, histograms
from deployments.guards.domain.families.percentiles import Measure
from deployments.guards.domain.histogram_state import HistogramState, HistogramTerms
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.guards.domain.promql import QueryTarget, Sides
from fleet.clusters.domain.prometheus import PrometheusSample, PrometheusUnreachable, QueryResult

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
        tuple(PrometheusSample(float(n), {"instance": "e", "le": le}) for le, n in made.items()),
    )


NOTHING = QueryResult("vector", ())


def taken(
    state: HistogramState, *reading: Any, measure: Measure = Measure.LATENCY
) -> HistogramState:
    stored = histogram_state.from_json(state.to_json())
    terms = HistogramTerms(guards=(AT_40,), sides=SIDES, at=AT)
    return histogram_state.take(stored, measure, list(reading), terms)


def test_the_first_source_with_both_sides_is_kept_for_the_step() -> None:
    start = HistogramState()
    queries = histogram_state.queries(start, Measure.LATENCY, SIDES)
    assert len(queries) == 14
    assert 'destination_workload=~"detector-r1(-predictor)?"' in queries[0]

    half = taken(start, buckets(5, 0), NOTHING, *[NOTHING] * 12)
    assert half.problem == histogram_sources.NO_SOURCE[Measure.LATENCY]
    first = taken(start, buckets(5, 0), NOTHING, buckets(90, 1), buckets(10, 1), *[NOTHING] * 10)
    assert (first.source, first.problem) == ("envoy", "")
    assert not first.tests.candidate, "one reading has nothing to compare with"
    assert first.tests.before == {10.0: 89, 50.0: 89, math.inf: 90}
    assert len(histogram_state.queries(first, Measure.LATENCY, SIDES)) == 2

    second = taken(first, buckets(190, 1), buckets(30, 4))
    assert second.tests.candidate == {10.0: 17, 50.0: 17, math.inf: 20}
    gone = taken(second, buckets(190, 1), NOTHING)
    assert gone.problem == (
        "Prometheus has no Envoy histogram at the gateway of the candidate revision"
    )
    away = taken(gone, PrometheusUnreachable("it does not answer"), buckets(1, 1))
    assert away.problem == "it does not answer"
    assert taken(away, buckets(290, 1), buckets(40, 4)).tests.candidate[math.inf] == 30


@pytest.mark.parametrize(
    ("measure", "metrics"),
    [
        (
            Measure.TTFT,
            [
                "vllm:time_to_first_token_seconds",
                "sglang:time_to_first_token_seconds",
                "time_to_first_token_seconds",
                "trtllm_time_to_first_token_seconds",
            ],
        ),
        (
            Measure.ITL,
            [
                "vllm:inter_token_latency_seconds",
                "vllm:time_per_output_token_seconds",
                "sglang:inter_token_latency_seconds",
                "time_per_output_token_seconds",
                "trtllm_time_per_output_token_seconds",
            ],
        ),
    ],
)
def test_tokens_are_read_from_each_server_of_language_models_in_seconds(
    measure: Measure, metrics: list[str]
) -> None:
    queries = histogram_state.queries(HistogramState(), measure, SIDES)
    assert queries[::2] == [
        f'sum by (instance, le) ({metric}_bucket{{namespace="vision", '
        'pod=~"detector-r1(-predictor)?-[a-z0-9]+-[a-z0-9]+"})'
        for metric in metrics
    ]
    nothing = [NOTHING] * len(queries)
    absent = taken(HistogramState(), *nothing, measure=measure)
    assert absent.problem == histogram_sources.NO_SOURCE[measure]

    last = taken(HistogramState(), *nothing[2:], buckets(90, 1), buckets(10, 1), measure=measure)
    assert last.source == metrics[-1]
    assert last.tests.before == {10_000.0: 89, 50_000.0: 89, math.inf: 90}, "milliseconds"
