"""Times are compared only between pods of about the same load; errors always are."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.guards.domain import counter_verdicts, percentile_tests, percentile_verdicts
from deployments.guards.domain import sequential_tests as tests_of_counters
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import MOST_DIFFERENCE, LoadDifference, PodLoad
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests
from deployments.plans.domain.rollout_plan import AnalysisSettings
from tests.deployments.guards.test_percentile_guards import BESIDE as P95_BESIDE
from tests.deployments.guards.test_percentile_guards import PAST, many
from tests.deployments.guards.test_verdicts import sums

EQUAL = PodLoad(stable=50, candidate=50, stable_pods=1, candidate_pods=1)
IDLE = PodLoad(stable=95, candidate=5, stable_pods=1, candidate_pods=1)
BUSY = PodLoad(stable=25, candidate=75, stable_pods=2, candidate_pods=2)
LIMITS = (
    GuardLimit(metric="error_rate", max_ratio=1.25),
    GuardLimit(metric="latency_mean", max_ratio=1.25),
    GuardLimit(metric="throughput_per_gpu", max_ratio=1.25),
)
percent, pods = st.integers(1, 99), st.integers(1, 200)


@pytest.mark.parametrize(
    ("load", "difference"),
    [
        (EQUAL, LoadDifference.NONE),
        (IDLE, LoadDifference.LESS),
        (BUSY, LoadDifference.MORE),
        # Exactly one and a half times is still comparable, and a little more is not.
        (PodLoad(75, 25, 4, 2), LoadDifference.NONE),
        (PodLoad(40, 60, 1, 1), LoadDifference.NONE),
        (PodLoad(39, 61, 1, 1), LoadDifference.MORE),
        (PodLoad(75, 25, 3, 1), LoadDifference.NONE),
        # A shadow gets copies: stable answers everything.
        (PodLoad(100, 10, 10, 1), LoadDifference.NONE),
        (PodLoad(100, 10, 1, 1), LoadDifference.LESS),
        # Not known, and nothing to compare with.
        (PodLoad(95, 5, 0, 1), LoadDifference.NONE),
        (PodLoad(95, 5, 1, 0), LoadDifference.NONE),
        (PodLoad(0, 100, 1, 1), LoadDifference.NONE),
    ],
)
def test_loads_differ_by_more_than_one_and_a_half_times(
    load: PodLoad, difference: LoadDifference
) -> None:
    assert load.difference == difference
    assert bool(load.describe_difference()) == (difference != LoadDifference.NONE)


def test_the_difference_names_both_sides() -> None:
    assert IDLE.describe_difference() == (
        "each candidate pod gets 5% of the load of a stable pod "
        "(5% of requests on 1 pod, 95% of requests on 1 pod)"
    )
    assert BUSY.describe_difference() == (
        "each candidate pod gets 3 times the load of a stable pod "
        "(75% of requests on 2 pods, 25% of requests on 2 pods)"
    )


@given(stable=percent, candidate=percent, stable_pods=pods, candidate_pods=pods)
def test_the_other_way_round_it_is_the_opposite(
    stable: int, candidate: int, stable_pods: int, candidate_pods: int
) -> None:
    load = PodLoad(stable, candidate, stable_pods, candidate_pods)
    other = PodLoad(candidate, stable, candidate_pods, stable_pods)
    opposite = {
        LoadDifference.NONE: LoadDifference.NONE,
        LoadDifference.LESS: LoadDifference.MORE,
        LoadDifference.MORE: LoadDifference.LESS,
    }

    assert other.difference == opposite[load.difference]
    ratio = Fraction(candidate, candidate_pods) / Fraction(stable, stable_pods)
    is_far = max(ratio, 1 / ratio) > MOST_DIFFERENCE
    assert (load.difference != LoadDifference.NONE) == is_far


def judged(
    load: PodLoad,
    *,
    ms: float,
    busy: int = 1,
    readings: int = 60,
    limits: tuple[GuardLimit, ...] = LIMITS,
) -> tuple[list[GuardResult], StepTests]:
    """Stable answers in 20 ms; a calm service, so that each reading is a block."""
    tests = StepTests(lengths=BlockLengths(errors=0.0, means=0.0, is_from_history=True))
    slow = Side(sums(900, ms=20), replace(sums(100, ms=ms), busy_ms=100 * busy))
    for _ in range(readings):
        tests = tests_of_counters.advance(
            tests, slow, procedure=Procedure(limits=limits), load=load.difference
        )
    by = CounterInputs(
        tests=tests,
        alpha=AnalysisSettings().alpha / 3,
        is_strict=False,
        min_requests=100,
        load=load,
    )
    return list(counter_verdicts.judge(limits, by)), tests


def verdicts(load: PodLoad, *, ms: float, busy: int = 1) -> list[Verdict]:
    return [Verdict(result.verdict) for result in judged(load, ms=ms, busy=busy)[0]]


def test_times_of_another_load_are_not_comparable_and_errors_are_judged() -> None:
    for load in (IDLE, BUSY):
        results, tests = judged(load, ms=20)

        assert [result.verdict for result in results] == [
            "pass",
            "not comparable",
            "not comparable",
        ]
        assert results[1].message == load.describe_difference()
        assert (results[1].stable, results[1].candidate) == ("20.0 ms", "20.0 ms")
        relative = {
            name for name in tests.claims if name.endswith(".ratio") and "error" not in name
        }
        assert not any(tests.get_claim(name).trials for name in relative), "no bet of the slow lane"


def test_forty_percent_slower_is_found_at_the_same_load_only() -> None:
    assert verdicts(EQUAL, ms=28)[1] == Verdict.FAILED
    assert verdicts(IDLE, ms=28)[1] == Verdict.NOT_COMPARABLE
    assert verdicts(BUSY, ms=28)[1] == Verdict.NOT_COMPARABLE


def test_gross_slowness_despite_less_load_still_fails() -> None:
    assert verdicts(IDLE, ms=200)[1] == Verdict.FAILED
    assert verdicts(BUSY, ms=200)[1] == Verdict.NOT_COMPARABLE, "its pods have three times as much"


def test_throughput_of_small_batches_fails_nobody() -> None:
    assert verdicts(EQUAL, ms=20, busy=10)[2] == Verdict.FAILED
    assert verdicts(IDLE, ms=20, busy=10)[2] == Verdict.NOT_COMPARABLE


def test_an_absolute_limit_needs_no_comparison() -> None:
    limits = (GuardLimit(metric="latency_mean", max=25.0),)

    assert judged(IDLE, ms=20, limits=limits)[0][0].verdict == "pass"
    assert judged(IDLE, ms=28, limits=limits)[0][0].verdict == "fail"


def test_readings_of_another_load_do_not_count_against_it_later() -> None:
    _, tests = judged(BUSY, ms=28)
    for _ in range(5):
        tests = tests_of_counters.advance(
            tests, Side(sums(900, ms=20), sums(100, ms=20)), procedure=Procedure(limits=LIMITS)
        )
    by = CounterInputs(tests=tests, alpha=0.01, is_strict=False, min_requests=100, load=EQUAL)

    latency = counter_verdicts.judge(LIMITS, by)[1]

    assert tests.get_claim(tests_of_counters.ratio_test("latency_mean")).trials == 5
    assert counter_verdicts.is_worse(LIMITS[1], by) is False
    assert latency.verdict != "not comparable"


def test_too_few_requests_say_so_first() -> None:
    results, _ = judged(IDLE, ms=20, readings=0)

    assert [result.verdict for result in results] == ["not enough data"] * 3


def test_percentiles_beside_stable_are_not_comparable_either() -> None:
    def read(load: PodLoad, readings: int) -> PercentileTests:
        tests = percentile_tests.begin(PercentileTests(block_seconds=0.0), PAST)
        for _ in range(readings):
            tests = percentile_tests.advance(
                percentile_tests.from_json(tests.to_json()),
                stable=many(900, 40),
                candidate=many(70, 30),
                guards=(P95_BESIDE,),
                seconds=10,
                load=load.difference,
            )
        return tests

    def verdict(load: PodLoad) -> str:
        by = percentile_verdicts.PercentileInputs(
            tests=read(load, 30), alpha=0.001, is_strict=False, min_requests=100, load=load
        )
        return percentile_verdicts.judge(P95_BESIDE, by).verdict

    assert verdict(EQUAL) == "fail"
    assert verdict(BUSY) == "not comparable"
    mixed = read(BUSY, 30)
    assert all(claim.slow.peak == 1.0 for claim in mixed.claims.values()), "nothing was bet"
