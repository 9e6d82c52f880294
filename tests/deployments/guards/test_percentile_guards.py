"""Percentiles of latency from histograms: what is counted, tested and said."""

from __future__ import annotations

import math
import random
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.guards.domain import histograms, percentile_verdicts, percentiles, prometheus_state
from deployments.guards.domain.percentile_verdicts import Judging
from deployments.guards.domain.percentiles import PercentileGuard, PercentileTests
from deployments.guards.domain.prometheus_state import Sides, State
from deployments.guards.domain.promql import QueryTarget
from deployments.plans.domain import rollout_plan
from fleet.clusters.domain.prometheus import PrometheusUnreachable, QueryResult, Sample
from portal.core.definitions import Rejected

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
BOUNDS = (5.0, 10.0, 25.0, 50.0, 100.0, 250.0)
AT_40 = PercentileGuard(metric="latency_p95", max=40.0)
BESIDE = PercentileGuard(metric="latency_p95", max_ratio=1.5)


def counts(*times: float) -> dict[float, int]:
    made = {bound: sum(time <= bound for time in times) for bound in BOUNDS}
    return {**made, math.inf: len(times)}


def many(fast: int, slow: int) -> dict[float, int]:
    return counts(*[8.0] * fast, *[60.0] * slow)


def judged(
    guard: PercentileGuard, stable: dict[float, int], candidate: dict[float, int], **changed: Any
) -> tuple[str, str]:
    tests = percentiles.advance(
        PercentileTests(), stable=stable, candidate=candidate, guards=(guard,)
    )
    by = Judging(
        **{"tests": tests, "alpha": 0.001, "is_strict": False, "min_requests": 100, **changed}
    )
    result = percentile_verdicts.judge(guard, by)
    return result.verdict, result.message


def test_a_percentile_is_shown_as_its_bucket() -> None:
    histogram = counts(*range(1, 101))

    assert histograms.bucket_of(histogram, 0.95) == (50.0, 100.0)
    assert histograms.format_bucket((25.0, 50.0)) == "25\N{EN DASH}50 ms"
    assert histograms.format_bucket(histograms.bucket_of(counts(500.0), 0.95)) == "> 250 ms"
    assert histograms.bucket_of(counts(), 0.95) is None


def test_more_slow_requests_than_the_percentile_allows_fail_it() -> None:
    assert judged(AT_40, many(900, 0), many(380, 20)) == (
        "pass",
        "no slowdown detected; 20 of 400 requests took more than 50 ms, and 5% may",
    )
    assert judged(AT_40, many(900, 0), many(340, 60)) == (
        "fail",
        "slower than allowed: 60 of 400 requests took more than 50 ms, and 5% may",
    )
    assert judged(AT_40, many(900, 0), many(374, 26)) == (
        "not enough data",
        "above the limit, but not statistically significant; 26 of 400 requests took more "
        "than 50 ms, and 5% may",
    )


def test_it_is_shown_to_be_within_only_by_many_requests() -> None:
    strict = {"is_strict": True}

    assert judged(AT_40, many(900, 0), many(4000, 0), **strict)[0] == "pass"
    assert judged(AT_40, many(900, 0), many(4000, 0), **strict)[1].startswith("proven to be within")
    assert judged(AT_40, many(900, 0), many(100, 3), **strict)[0] == "not enough data"


def test_too_few_and_no_requests_wait() -> None:
    assert judged(AT_40, many(900, 0), many(99, 0)) == (
        "not enough data",
        "99 of 100 requests in the histogram so far",
    )
    assert judged(AT_40, many(900, 0), {}) == (
        "not enough data",
        "no requests are in the candidate's histogram at this step yet",
    )
    assert judged(AT_40, many(900, 0), many(99, 900), unknown="gone") == (
        "not enough data",
        "gone",
    )


def test_a_limit_beyond_the_last_bound_cannot_be_tested() -> None:
    beyond = PercentileGuard(metric="latency_p95", max=251.0)

    assert judged(beyond, many(900, 0), many(0, 900)) == (
        "not enough data",
        "the limit is above the last bound of the histogram, so it cannot be tested",
    )


def test_beside_stable_a_slow_candidate_fails_and_an_equally_slow_one_passes() -> None:
    assert judged(BESIDE, many(3000, 0), many(300, 100))[0] == "fail"
    assert judged(BESIDE, many(3000, 0), many(400, 0))[0] == "pass"
    assert judged(BESIDE, many(2700, 300), many(360, 40))[0] == "pass"
    assert judged(BESIDE, {}, many(400, 0)) == (
        "not enough data",
        "no requests are in stable's histogram at this step yet",
    )


def test_the_line_says_where_it_was_tested_and_what_measured_it() -> None:
    tests = percentiles.advance(
        PercentileTests(), stable=many(900, 0), candidate=many(400, 0), guards=(AT_40,)
    )
    by = Judging(tests, 0.001, False, 0, source="Envoy histogram at the gateway", query="q", at=AT)

    line = percentile_verdicts.judge(
        PercentileGuard(metric="latency_p95", max=40.0, max_ratio=1.5), by
    )

    assert (line.guard, line.stable, line.candidate) == ("Latency p95", *["5\N{EN DASH}10 ms"] * 2)
    assert line.limit == "≤ 40 ms (tested at 50 ms) and ≤ 1.5 times stable (tested at 25 ms)"
    assert line.source == "Envoy histogram at the gateway"
    assert (line.n, line.query, line.measured_at) == (400, "q", "03:04:05 UTC")
    assert line.statistic.startswith("always-valid p ")


STEPS = [{"weight": 10, "soak_seconds": 60, "min_requests": 100}]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({}, "needs a max, a max_ratio or both"),
        ({"max": 0}, "guards.0.max"),
        ({"max": "40"}, "guards.0.max"),
        ({"max_ratio": 0.5}, "guards.0.max_ratio"),
        ({"max": 1, "name": "x"}, "guards.0.name"),
    ],
)
def test_a_guard_that_says_nothing_is_refused(row: dict[str, Any], message: str) -> None:
    with pytest.raises(Rejected) as refusal:
        rollout_plan.check({"guards": [{"metric": "latency_p95", **row}]}, STEPS)

    assert message in str(refusal.value.fields)


def test_equal_sides_are_called_slower_no_more_often_than_alpha() -> None:
    """Looked at 40 times each; both limits lie exactly at what both sides do."""
    dice, alarms = random.Random(7), 0
    for _ in range(25):
        tests = PercentileTests()
        guards = (PercentileGuard(metric="latency_p95", max=50.0, max_ratio=1.0, ignore_below=0.0),)
        for _ in range(40):
            slow = [sum(dice.random() < 0.05 for _ in range(n)) for n in (180, 20)]
            tests = percentiles.advance(
                tests,
                stable=many(180 - slow[0], slow[0]),
                candidate=many(20 - slow[1], slow[1]),
                guards=guards,
            )
        p = [one(guards[0], tests) for one in (percentiles.p_of_max, percentiles.p_of_ratio)]
        alarms += min(p) <= 0.01

    assert alarms <= 1


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 20)),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=30)
def test_stored_tests_go_on_exactly(intervals: list[tuple[int, int, int]]) -> None:
    kept = stored = PercentileTests()
    for fast, slow, others in intervals:
        step: dict[str, Any] = {
            "stable": many(others, 1),
            "candidate": many(fast, slow),
            "guards": (AT_40,),
        }
        kept = percentiles.advance(kept, **step)
        stored = percentiles.advance(percentiles.tests_from_json(stored.to_json()), **step)

    assert stored == kept
    assert histograms.total(kept.candidate) == sum(fast + slow for fast, slow, _ in intervals)


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
    assert len(queries) == 8
    assert 'destination_workload=~"detector-r1(-predictor)?"' in queries[0]

    half = taken(State(), buckets(5, 0), NOTHING, *[NOTHING] * 6)
    assert half.problem == histograms.NO_SOURCE
    first = taken(State(), buckets(5, 0), NOTHING, buckets(90, 1), buckets(10, 1), *[NOTHING] * 4)
    assert (first.source, first.problem) == ("envoy", "")
    assert first.tests == PercentileTests(), "one reading has nothing to compare with"
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
