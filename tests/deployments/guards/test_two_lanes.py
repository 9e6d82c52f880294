"""Two lanes: blocks long enough to forget each other, capped payoffs, gross limits at every reading."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain import sequential_tests, step_tests
from deployments.guards.domain.betting import e_process, lanes, rates
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.lanes import Claim, IntervalTrial
from deployments.guards.domain.betting.rates import Count, Pair, RateLimit
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.guard_set import PlanGuards
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests

DEFAULTS = Procedure(PlanGuards().server_limits)
RATIO = RateLimit(ratio=1.25)


def binomial(n: int, p: float) -> list[float]:
    return [math.comb(n, k) * p**k * (1 - p) ** (n - k) for k in range(n + 1)]


@pytest.mark.parametrize("payoff", Payoff)
@pytest.mark.parametrize("part", [0.3, 1.0])
def test_no_payoff_is_expected_to_gain_over_two_blocks_of_an_allowed_candidate(
    payoff: Payoff, part: float
) -> None:
    """All outcomes of two blocks of 4 and 6 requests are enumerated."""
    n_c, n_s, b = 4, 6, 0.3
    chance = e_process.share_of_failures(ratio=1.25, candidate=n_c, stable=n_s)
    outcomes = [
        (x, y, p * q)
        for x, p in enumerate(binomial(n_c, 1.25 * b * part))
        for y, q in enumerate(binomial(n_s, b))
    ]
    mean = 0.0
    for first, second in itertools.product(outcomes, repeat=2):
        wealth = e_process.suspicion()
        for x, y, _ in (first, second):
            wealth = wealth.bet(hits=x, trials=x + y, chance=chance, payoff=payoff)
        mean += first[2] * second[2] * wealth.value

    assert mean <= 1 + 1e-9


def test_a_burst_gains_at_most_a_factor_of_two_in_the_slow_lane() -> None:
    calm = Claim().bet_block(IntervalTrial(1, 10, 0.1), Payoff.CAPPED)
    burst = calm.bet_block(IntervalTrial(500, 500, 0.1), Payoff.CAPPED)
    robust = calm.bet_block(IntervalTrial(500, 500, 0.1), Payoff.SYMMETRIC)

    fresh = 1 / 6
    limit = 2 * (sum(calm.slow.capitals) / len(e_process.WORSE) + fresh) + 1 / 3
    assert burst.slow.value == pytest.approx(limit)
    assert robust.slow.value <= burst.slow.value
    assert calm.bet_reading(IntervalTrial(500, 500, 0.1)).fast.value > 1e60


def test_the_symmetric_payoff_is_fair_for_noise_that_is_symmetric_in_log_e() -> None:
    for off in (0.1, 1.0, 10.0):
        assert (
            Payoff.SYMMETRIC.compute(math.exp(off)) + Payoff.SYMMETRIC.compute(math.exp(-off))
        ) / 2 == 1


@given(
    st.lists(
        st.tuples(st.integers(0, 80), st.integers(0, 20), st.integers(0, 200), st.integers(0, 20)),
        min_size=1,
        max_size=6,
    )
)
@settings(max_examples=30, deadline=None)
def test_stored_tests_go_on_exactly_also_across_a_step(
    readings: list[tuple[int, int, int, int]],
) -> None:
    kept = stored = StepTests(lengths=BlockLengths(errors=30.0, means=0.0))
    for index, (good, bad, others, failed) in enumerate(readings):
        side = Side(sums(others, failed), sums(good, bad))
        if index == 3:
            lengths = BlockLengths(errors=0.0, means=30.0)
            kept = sequential_tests.next_step(kept, DEFAULTS, lengths)
            stored = sequential_tests.next_step(
                step_tests.from_json(stored.to_json()), DEFAULTS, lengths
            )
        kept = sequential_tests.advance(kept, side, procedure=DEFAULTS)
        stored = sequential_tests.advance(
            step_tests.from_json(stored.to_json()), side, procedure=DEFAULTS
        )

    assert stored == kept


def sums(success: int, failure: int = 0, ms: float = 20.0) -> Sums:
    return Sums(success=success, failure=failure, duration_us=round(success * ms * 1000))


def test_capital_is_carried_over_a_step_and_the_open_block_counts_as_it_is() -> None:
    tests = StepTests(lengths=BlockLengths(errors=30.0, means=30.0))
    for _ in range(7):
        tests = sequential_tests.advance(
            tests, Side(sums(900), sums(90, 10, ms=30)), procedure=DEFAULTS
        )
    assert tests.get_claim("error_rate.ratio").slow.intervals == 1

    later = sequential_tests.next_step(tests, DEFAULTS, BlockLengths())

    carried = later.get_claim("error_rate.ratio")
    assert carried.slow.intervals == 2
    assert carried.slow.peak > tests.get_claim("error_rate.ratio").slow.peak
    assert carried.fast == tests.get_claim("error_rate.ratio").fast
    assert (carried.within, carried.trials) == (e_process.confidence(), 0)
    assert (later.total, later.open, later.seconds) == (Side(), {}, 0.0)


@settings(max_examples=30, deadline=None)
@given(st.permutations(list(range(6))))
def test_the_order_of_the_readings_of_a_block_does_not_matter(order: list[int]) -> None:
    readings = [Side(sums(100 + i, i), sums(30, 2 * i)) for i in range(6)]
    lengths = BlockLengths(errors=30.0, means=30.0)

    def slow(sides: list[Side]) -> list[e_process.Wealth]:
        tests = StepTests(lengths=lengths)
        for side in sides:
            tests = sequential_tests.advance(tests, side, procedure=DEFAULTS)
        return [claim.slow for claim in tests.claims.values()]

    assert slow([readings[i] for i in order]) == slow(readings)


def test_a_gross_failure_needs_no_block() -> None:
    tests, readings = StepTests(lengths=BlockLengths(errors=300.0, means=300.0)), 0
    while sequential_tests.evidence_of(guard_limits.DEFAULTS[0], tests) < 200:
        tests = sequential_tests.advance(tests, Side(sums(95, 1), sums(0, 5)), procedure=DEFAULTS)
        readings += 1

    assert readings == 2


def test_a_gross_slowdown_needs_no_block_and_a_candidate_that_warms_up_is_only_judged_by_it() -> (
    None
):
    latency = guard_limits.DEFAULTS[2]

    def readings_until_found(ms: float, *, is_warm: bool) -> int:
        tests = StepTests(lengths=BlockLengths(errors=0.0, means=0.0))
        for reading in range(1, 40):
            uncut = Side(sums(900), sums(100, ms=ms))
            cold = replace(uncut.candidate, duration_us=0, queue_us=0, untimed=100)
            judged = uncut if is_warm else Side(uncut.stable, cold)
            tests = sequential_tests.advance(tests, judged, procedure=DEFAULTS, uncut=uncut)
            if sequential_tests.evidence_of(latency, tests) >= 200:
                return reading
        return 0

    assert readings_until_found(40.0, is_warm=True) == 14
    assert readings_until_found(40.0, is_warm=False) == 0
    assert readings_until_found(60.0, is_warm=False) == 14


def claims_after(*pairs: Pair, limit: RateLimit = RATIO) -> dict[str, Claim]:
    claims: dict[str, Claim] = {}
    for pair in pairs:
        rates.bet_block(claims, "lost", limit, pair, Payoff.CAPPED)
        rates.bet_reading(claims, "lost", limit, pair)
    return claims


def test_any_rate_is_judged_by_the_same_bet() -> None:
    """For example of requests that never come back: five times as often at a base rate of 0.1%."""
    bad = [Pair(Count(19_000, 19), Count(1000, 5))] * 20
    good = [Pair(Count(19_000, 19), Count(1000, 2))] * 20

    assert rates.evidence(claims_after(*bad), "lost", RATIO) >= 200
    assert rates.evidence(claims_after(*good), "lost", RATIO) < 1
    fixed = RateLimit(ratio=1.25, floor=0.005)
    assert rates.evidence(claims_after(*bad, limit=fixed), "lost", fixed) < 200
    assert rates.is_within(claims_after(*good), "lost", RATIO, alpha=0.01) is False
    clean = [Pair(Count(19_000, 0), Count(1000, 0))] * 20
    assert rates.is_within(claims_after(*clean), "lost", RATIO, alpha=0.01)


def test_the_default_floor_is_half_a_percent_or_twice_stable() -> None:
    assert RATIO.compute_highest(0.001) == 0.002
    assert RATIO.compute_highest(0.003) == 0.005
    assert RATIO.compute_highest(0.01) == 0.0125
    assert RateLimit(ratio=1.25, floor=0.02).compute_highest(0.001) == 0.02


def test_p_of_no_evidence_is_one() -> None:
    assert lanes.p_of(0.5) == 1.0
    assert lanes.p_of(200.0) == 0.005
