"""Requests that never came back: the bet on what the gateway counted, and what is missing on the way."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deployments.guards.domain import counter_verdicts, evidence, lost_requests
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.lost_requests import GatewayState
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import StepTests
from deployments.plans.domain import presets
from fleet.telemetry.domain.gateway_metrics import Passed

AT = datetime(2026, 11, 23, tzinfo=UTC)
LIMITS = PlanGuards().gateway_limits
# Of one test of the default plan.
DEFAULT_PLAN = presets.DEFAULT.build_plan()
ALPHA = counter_verdicts.alpha_of_one_test(0.01, tests=DEFAULT_PLAN.guards.tests)
PROCEDURE = Procedure(LIMITS)
CALM_STABLE = BlockLengths(errors=0.0, means=0.0, is_from_history=True)


def judged(state: GatewayState, *, unknown: str = "") -> GuardResult:
    [limit] = LIMITS
    by = CounterInputs(
        tests=state.tests, alpha=ALPHA, is_strict=False, min_requests=100, unknown=unknown
    )
    return lost_requests.judge(limit, state, by)


def after(readings: int, *, candidate_lost: float, stable_lost: float = 0.0) -> GatewayState:
    """100 requests a second of which 5% go to the candidate, read every 10 seconds from two proxies."""
    state = GatewayState(tests=StepTests(lengths=CALM_STABLE))
    for number in range(readings + 1):
        counts = {
            side: {
                proxy: Passed(
                    requests=number * per_reading // 2,
                    lost=round(number * per_reading // 2 * share),
                )
                for proxy in ("envoy-1", "envoy-2")
            }
            for side, per_reading, share in (
                ("stable", 950, stable_lost),
                ("candidate", 50, candidate_lost),
            )
        }
        state = lost_requests.take(state, PROCEDURE, counts, AT + timedelta(seconds=10 * number))
        state = lost_requests.from_json(state.to_json())
    return state


def test_a_default_plan_guards_lost_requests() -> None:
    [limit] = LIMITS

    assert (limit.max_ratio, limit.ignore_below) == (1.25, None)
    assert limit in DEFAULT_PLAN.guards.limits
    assert limit not in DEFAULT_PLAN.guards.server_limits


def test_a_candidate_that_loses_15_percent_at_weight_5_fails_within_minutes() -> None:
    result = judged(after(20, candidate_lost=0.15))

    assert result.verdict == Verdict.FAILED
    assert (result.guard, result.stable, result.candidate) == ("Lost requests", "0.00%", "15.00%")
    assert result.message == "worse than allowed: 150 of 1,000 requests never came back"
    assert result.source == "gateway counters"


def test_equal_losses_and_none_at_all_pass() -> None:
    assert judged(after(30, candidate_lost=0.0)).verdict == Verdict.PASSED
    both = judged(after(30, candidate_lost=0.04, stable_lost=0.04))
    assert both.verdict == Verdict.PASSED, both.message


def test_until_enough_passed_there_is_no_verdict() -> None:
    result = judged(after(1, candidate_lost=0.0))

    assert (result.verdict, result.message) == (
        Verdict.NOT_ENOUGH,
        "50 of 100 requests so far",
    )


def test_where_nothing_counts_the_line_says_so_and_never_passes() -> None:
    state = lost_requests.without_reading(
        GatewayState(), "no proxy states a port for its metrics", is_countable=False
    )

    result = judged(state, unknown=state.problem)

    assert result.verdict == Verdict.NOT_KNOWN
    assert result.message == (
        "requests that never return are not counted here: no proxy states a port for its metrics"
    )
    assert evidence.stopping((result,)) == ()


def test_a_reading_that_fails_after_others_is_waited_for() -> None:
    state = lost_requests.without_reading(
        after(6, candidate_lost=0.0), "no permission any more", is_countable=False
    )

    assert judged(state, unknown=state.problem).verdict == Verdict.NOT_ENOUGH
    assert lost_requests.from_json(state.to_json()) == state


def test_without_a_stable_side_the_step_before_is_the_reference() -> None:
    state = lost_requests.next_step(
        after(30, candidate_lost=0.0, stable_lost=0.02), PROCEDURE, CALM_STABLE
    )
    judged_here = lost_requests.limits_at(LIMITS, state, is_alone=True)
    for number in range(8):
        passed = {"candidate": {"envoy-1": Passed(1000 * number, 150 * number)}}
        state = lost_requests.take(state, Procedure(judged_here), passed, AT)
    [limit] = LIMITS
    by = CounterInputs(tests=state.tests, alpha=ALPHA, is_strict=False, min_requests=100)

    result = lost_requests.judge(limit, state, by, is_alone=True)

    assert result.verdict == Verdict.FAILED
    assert (result.stable, result.candidate) == ("2.00% before", "15.00%")
    assert result.limit == "≤ 2.50% (1.25 times before)"


def test_without_a_stable_side_and_without_a_step_before_nothing_is_decided() -> None:
    counts = {"candidate": {"envoy-1": Passed(1000)}}
    state = lost_requests.take(GatewayState(), Procedure(()), counts, AT)
    [limit] = LIMITS
    by = CounterInputs(tests=state.tests, alpha=ALPHA, is_strict=False, min_requests=100)

    assert lost_requests.judge(limit, state, by, is_alone=True).verdict == Verdict.NOT_KNOWN


def test_a_candidate_that_the_gateway_had_never_counted_starts_at_zero() -> None:
    """Istio shows a destination with its first request only."""
    stable = {"stable": {"envoy-1": Passed(1000)}}
    begun = lost_requests.take(GatewayState(), PROCEDURE, stable, AT)

    both = {"stable": {"envoy-1": Passed(2000)}, "candidate": {"envoy-1": Passed(50, 20)}}
    state = lost_requests.take(begun, PROCEDURE, both, AT)

    assert state.sent == (1000, 50)
    assert state.tests.total.candidate.failure == 20


def test_a_proxy_that_is_new_or_was_restarted_adds_nothing_from_before() -> None:
    first = {"stable": {"envoy-1": Passed(5000, 40)}, "candidate": {"envoy-1": Passed(500, 4)}}
    state = lost_requests.take(GatewayState(), PROCEDURE, first, AT)

    second = {
        "stable": {"envoy-1": Passed(10, 1), "envoy-2": Passed(700, 7)},
        "candidate": {"envoy-1": Passed(2, 0), "envoy-2": Passed(70, 7)},
    }
    state = lost_requests.take(state, PROCEDURE, second, AT)

    assert state.sent == (10, 2)
    assert state.tests.total.stable.failure == 1


@pytest.mark.parametrize(
    ("counted", "sent", "is_failing"),
    [
        # Half of what the gateway sent to the candidate never reached its server.
        ((9500, 250), (9500, 500), True),
        # The gateway itself sent too little: its fault, an alarm only.
        ((9750, 250), (9750, 250), False),
        # Right on both.
        ((9500, 500), (9500, 500), False),
        # More than its share is not lost on the way.
        ((9000, 1000), (9500, 500), False),
        # Requests for metadata pass the gateway and are counted by no server, on both sides alike.
        ((4750, 250), (9500, 500), False),
        ((0, 0), (9500, 500), False),
        ((9500, 250), (0, 0), False),
    ],
)
def test_a_share_that_is_missing_on_the_way_fails(
    counted: tuple[int, int], sent: tuple[int, int], is_failing: bool
) -> None:
    result = evidence.judge_received(weight=5, sent_weight=5, counted=counted, sent=sent)

    assert (result is not None) == is_failing
    if result is not None:
        assert evidence.stopping((result,)) == (result,)
        assert result.message == (
            "the gateway sent 5.0% of the requests to the candidate, but only 2.6% were counted "
            "there: its requests are lost on the way"
        )
