"""Percentiles of latency from histograms: what is counted, tested and said."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.guards.domain import (
    histograms,
    percentile_tests,
    percentile_verdicts,
)
from deployments.guards.domain.betting import slow_share
from deployments.guards.domain.betting.blocks import CALM
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentile_verdicts import PercentileInputs
from deployments.guards.domain.percentiles import PercentileGuard
from deployments.plans.domain import rollout_plan
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


# 4% above 50 ms and 10% above 10 ms.
PAST = counts(*[8.0] * 9000, *[20.0] * 600, *[60.0] * 390, *[200.0] * 10)


def advanced(
    guard: PercentileGuard,
    stable: dict[float, int],
    candidate: dict[float, int],
    *,
    readings: int = 1,
    past: dict[float, int] = PAST,
    block_seconds: float = CALM,
) -> PercentileTests:
    """So many readings of a calm service, each with these counts."""
    tests = percentile_tests.begin(PercentileTests(block_seconds=block_seconds), past)
    for _ in range(readings):
        tests = percentile_tests.advance(
            percentile_tests.from_json(tests.to_json()),
            stable=stable,
            candidate=candidate,
            guards=(guard,),
            seconds=10,
        )
    return tests


def judged(
    guard: PercentileGuard, stable: dict[float, int], candidate: dict[float, int], **changed: Any
) -> tuple[str, str]:
    tests = advanced(guard, stable, candidate)
    by = PercentileInputs(
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


def verdict(
    guard: PercentileGuard, tests: PercentileTests, *, is_strict: bool = False
) -> tuple[str, str]:
    by = PercentileInputs(tests=tests, alpha=0.001, is_strict=is_strict, min_requests=100)
    result = percentile_verdicts.judge(guard, by)
    return result.verdict, result.message


def test_more_slow_requests_than_the_percentile_allows_fail_it() -> None:
    assert judged(AT_40, many(900, 0), many(380, 20)) == (
        "pass",
        "no regression detected; 20 of 400 requests took more than 50 ms, and 5% may",
    )
    assert judged(AT_40, many(900, 0), many(374, 26)) == (
        "not enough data",
        "above the limit, but not statistically significant; 26 of 400 requests took more "
        "than 50 ms, and 5% may",
    )
    slow = advanced(AT_40, many(900, 0), many(340, 60), readings=15)
    assert verdict(AT_40, slow) == (
        "fail",
        "slower than allowed: 900 of 6,000 requests took more than 50 ms, and 5% may",
    )
    gross = advanced(AT_40, many(900, 0), many(200, 200), readings=15, block_seconds=300.0)
    assert verdict(AT_40, gross)[0] == "fail", "the fast lane needs no blocks"
    stall = advanced(AT_40, many(900, 0), many(0, 400))
    assert verdict(AT_40, stall)[0] != "fail", "one reading is no more than a stall"


def test_it_is_shown_to_be_within_only_by_many_requests() -> None:
    few = advanced(AT_40, many(900, 0), many(100, 3))
    more = advanced(AT_40, many(900, 0), many(400, 0), readings=15)

    assert verdict(AT_40, few, is_strict=True)[0] == "not enough data"
    assert verdict(AT_40, more, is_strict=True)[0] == "pass"
    assert verdict(AT_40, more)[1].startswith("shown to be within the limit")


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


def mixed(scale: float, n: int) -> dict[float, int]:
    """Times that fall exponentially with a mean of 12 ms, so much slower."""
    return counts(*[-12 * scale * math.log(1 - (i + 0.5) / n) for i in range(n)])


def test_beside_stable_a_slow_candidate_fails_and_an_equally_slow_one_passes() -> None:
    past = mixed(1, 10_000)

    def after(scale: float, load: float = 1.0) -> tuple[str, str]:
        return verdict(
            BESIDE,
            advanced(BESIDE, mixed(load, 3000), mixed(scale * load, 400), readings=20, past=past),
        )

    assert after(2.2)[0] == "fail"
    assert after(1.0)[0] == "pass"
    assert after(1.0, load=3.0)[0] == "pass", "both sides slow down together"
    assert judged(BESIDE, {}, mixed(1, 400)) == (
        "not enough data",
        "no requests are in stable's histogram at this step yet",
    )


def test_slow_requests_of_both_sides_are_counted_in_the_same_readings() -> None:
    """Stable's quiet readings are never held against the candidate's busy ones."""
    past = mixed(1, 10_000)
    tests = percentile_tests.begin(PercentileTests(block_seconds=CALM), past)
    for reading in range(60):
        load = 1.0 if reading < 30 else 3.0
        tests = percentile_tests.advance(
            tests,
            stable=mixed(load, 3000),
            candidate=mixed(load, 300),
            guards=(BESIDE,),
            seconds=10,
        )

    assert percentile_tests.evidence_of(BESIDE, tests) < 1
    assert verdict(BESIDE, tests)[0] == "pass"


def test_a_histogram_that_cannot_show_the_limit_never_passes() -> None:
    past = {100.0: 9999, 500.0: 10_000, math.inf: 10_000}
    reading = {100.0: 400, 500.0: 400, math.inf: 400}

    tests = advanced(BESIDE, reading, reading, readings=20, past=past)

    assert BESIDE.smallest_visible(past, (100.0, 500.0)) is None
    assert verdict(BESIDE, tests) == (
        "not enough data",
        "cannot tell: the histogram has bounds at 100, 500 ms, which show no slowdown",
    )
    fine = {20.0: 5000, 40.0: 7500, 60.0: 8750, 80.0: 9375, 100.0: 9687, math.inf: 10_000}
    visible = BESIDE.smallest_visible(fine, (20.0, 40.0, 60.0, 80.0, 100.0))
    assert visible is not None
    assert 1.5 < visible < 2.5


def test_the_share_between_two_bounds_falls_as_tails_do() -> None:
    past = {10.0: 900, 20.0: 990, 40.0: 999, math.inf: 1000}

    assert slow_share.survival(past, 15.0, share=0.05) == pytest.approx(math.sqrt(0.1 * 0.01))
    assert slow_share.survival(past, 5.0, share=0.05) == pytest.approx(math.sqrt(0.1))
    assert slow_share.survival(past, 30.0, share=0.05) == 0.001, "too few above 40 ms to tell"
    assert slow_share.survival(past, -1.0, share=0.05) == 1.0
    assert slow_share.choose_bounds(past, 0.05) == (10.0, 20.0, 40.0)
    assert slow_share.kappa(past, 20.0, ratio=1.25, slack_ms=2.0, share=0.05) == pytest.approx(
        10**0.4
    )


def test_the_mean_over_the_bounds_is_expected_to_gain_nothing_from_equal_sides() -> None:
    """All outcomes of a reading of 3 and 5 requests in three buckets are enumerated."""
    guard = PercentileGuard(metric="latency_p95", max_ratio=1.0, ignore_below=0.0)
    chances = (0.5, 0.3, 0.2)

    def readings(n: int) -> list[tuple[dict[float, int], float]]:
        rows = []
        for fast in range(n + 1):
            for middle in range(n + 1 - fast):
                slow = n - fast - middle
                ways = math.factorial(n) / math.prod(map(math.factorial, (fast, middle, slow)))
                p = ways * math.prod(
                    c**k for c, k in zip(chances, (fast, middle, slow), strict=True)
                )
                rows.append(({10.0: fast, 20.0: fast + middle, math.inf: n}, p))
        return rows

    past = {10.0: 500, 20.0: 800, math.inf: 1000}
    start = percentile_tests.begin(PercentileTests(block_seconds=CALM), past)
    mean = 0.0
    for stable, p in readings(5):
        for candidate, q in readings(3):
            tests = percentile_tests.advance(
                start, stable=stable, candidate=candidate, guards=(guard,), seconds=10
            )
            capitals = [
                tests.get_claim(guard, f"ratio {bound!r}").slow.value for bound in (10.0, 20.0)
            ]
            mean += p * q * sum(capitals) / 2

    assert mean <= 1 + 1e-9


def test_the_line_says_where_it_was_tested_and_what_measured_it() -> None:
    tests = advanced(AT_40, many(900, 0), many(400, 0))
    by = PercentileInputs(
        tests=tests,
        alpha=0.001,
        is_strict=False,
        min_requests=0,
        source="Envoy histogram at the gateway",
        query="q",
        at=AT,
    )

    line = percentile_verdicts.judge(
        PercentileGuard(metric="latency_p95", max=40.0, max_ratio=1.5), by
    )

    assert (line.guard, line.stable, line.candidate) == ("Latency p95", *["5\N{EN DASH}10 ms"] * 2)
    assert line.limit == "≤ 40 ms (tested at 50 ms) and ≤ 1.5 times stable"
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


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 20)),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=30, deadline=None)
def test_stored_tests_go_on_exactly(intervals: list[tuple[int, int, int]]) -> None:
    kept = stored = percentile_tests.begin(PercentileTests(), PAST)
    for fast, slow, others in intervals:
        step: dict[str, Any] = {
            "stable": many(others, 1),
            "candidate": many(fast, slow),
            "guards": (AT_40, BESIDE),
            "seconds": 10.0,
        }
        kept = percentile_tests.advance(kept, **step)
        stored = percentile_tests.advance(percentile_tests.from_json(stored.to_json()), **step)
        again: dict[str, Any] = {
            "guards": (AT_40, BESIDE),
            "payoff": Payoff.CAPPED,
            "block_seconds": 60.0,
        }
        kept = percentile_tests.next_step(kept, **again) if slow_step(kept) else kept
        stored = percentile_tests.next_step(stored, **again) if slow_step(stored) else stored

    assert stored == kept


def slow_step(tests: PercentileTests) -> bool:
    return histograms.total(tests.candidate) > 60
