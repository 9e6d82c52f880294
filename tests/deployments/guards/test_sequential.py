"""Testing at every interval does not inflate false alarms; regressions are detected."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from deployments.guards.domain.betting import e_process
from tests.benchmarks import lanes_twin, sequential, worlds
from tests.benchmarks.worlds import Factors, World


def test_equal_revisions_are_hardly_ever_aborted_and_bad_ones_always() -> None:
    """A small form of `make bench NAME=sequential`."""
    good = worlds.simulate(World("equal"), rollouts=100, seed=1)
    edge = worlds.simulate(World("edge", errors=1.25, slower=1.25), rollouts=100, seed=2)
    bad = worlds.simulate(World("bad", errors=5.0), rollouts=20, seed=3)

    aborted = lanes_twin.aborts(good)
    assert (aborted >= 0).mean() <= 0.01
    assert (lanes_twin.aborts(edge) >= 0).mean() <= 0.01
    assert sequential.median_seconds(lanes_twin.aborts(bad)) <= 1.3 * 127
    lanes_twin.agree_with_product(good, aborted, rows=1)
    lanes_twin.agree_with_product(bad, lanes_twin.aborts(bad), rows=2)


@pytest.mark.parametrize(
    ("failing", "most"),
    [(worlds.own_bursts(1), 1), (worlds.own_bursts(12), 1), (worlds.own_wander(0.3, 240), 1)],
    ids=["bursts of 5 s", "bursts of 1 min", "wander of 30%"],
)
def test_bursts_of_its_own_abort_hardly_any_candidate(failing: Factors, most: int) -> None:
    """A small form of `make bench NAME=dependence`: 80% and more at one lane and every reading."""
    streams = worlds.simulate(World("own", failing=failing), rollouts=100, seed=4)

    aborted = lanes_twin.aborts(streams)

    assert (aborted >= 0).sum() <= most
    lanes_twin.agree_with_product(streams, aborted, rows=1)


def log_expectation(rho: float, *, n_c: int, n_s: int, a: float, b: float, ratio: float) -> float:
    """Logarithm of what the capital is multiplied by on average: one of the two powers alone may be
    too large for a float.
    """
    chance = e_process.share_of_failures(ratio=ratio, candidate=n_c, stable=n_s)
    c = 1 + (rho - 1) * chance
    return n_c * math.log1p(a * (rho / c - 1)) + n_s * math.log1p(b * (1 / c - 1))


@settings(max_examples=50)
@given(
    rho=st.sampled_from([*e_process.WORSE, *e_process.WITHIN]),
    n_c=st.integers(1, 5000),
    n_s=st.integers(1, 5000),
    b=st.floats(0, 0.5),
    ratio=st.floats(1, 2),
    part=st.floats(0, 1),
)
def test_the_bet_on_two_rates_is_never_expected_to_gain_while_the_null_holds(
    rho: float, n_c: int, n_s: int, b: float, ratio: float, part: float
) -> None:
    """Up to the limit for "worse", from the limit on for "within"."""
    a = b * ratio * part if rho > 1 else min(1.0, b * ratio * (1 + part))
    if rho < 1 and a < b * ratio:
        return

    gained = log_expectation(rho, n_c=n_c, n_s=n_s, a=a, b=b, ratio=ratio)

    assert gained <= 1e-6


@pytest.mark.parametrize("is_worse", [True, False])
def test_the_bet_on_one_rate_is_fair_at_its_limit(*, is_worse: bool) -> None:
    """Over all outcomes of an interval of 30 requests the capital keeps its mean."""
    start = e_process.suspicion() if is_worse else e_process.confidence()
    mean = sum(
        math.comb(30, hits)
        * 0.1**hits
        * 0.9 ** (30 - hits)
        * start.bet(hits=hits, trials=30, chance=0.1).value
        for hits in range(31)
    )

    assert mean == pytest.approx(1.0)


def test_a_late_regression_is_still_detected_soon() -> None:
    dice = random.Random(5)
    wealth = e_process.suspicion()
    for _ in range(500):
        wealth = wealth.bet(hits=dice.random() < 0.3, trials=1, chance=e_process.SIGN_CHANCE)
    assert wealth.peak < 20

    needed = 0
    while wealth.peak < 800:
        wealth = wealth.bet(hits=1, trials=1, chance=e_process.SIGN_CHANCE)
        needed += 1

    assert needed == 35


def test_the_capital_stays_finite_in_an_endless_rollout() -> None:
    wealth = e_process.suspicion()
    for _ in range(300):
        wealth = wealth.bet(hits=1000, trials=1000, chance=0.01)
    kept = e_process.suspicion(wealth.to_json())

    assert math.isfinite(wealth.value)
    assert kept == wealth


def test_without_trials_nothing_is_learnt() -> None:
    wealth = e_process.suspicion().bet(hits=3, trials=10, chance=0.1)

    assert wealth.bet(hits=0, trials=0, chance=0.1) == wealth


def test_the_bound_is_valid_at_every_interval() -> None:
    """Of 300 streams of 40 intervals, at most 5% may ever show a bound below the true rate."""
    dice = random.Random(11)
    missed = 0
    for _ in range(300):
        failures = 0
        for interval in range(1, 41):
            failures += sum(dice.random() < 0.05 for _ in range(10))
            bound = e_process.upper_bound(failures=failures, requests=10 * interval, alpha=0.05)
            if bound < 0.05:
                missed += 1
                break

    assert missed <= 15


def test_the_band_of_a_share_narrows_and_is_valid_at_every_interval() -> None:
    assert e_process.share_band(share=0.1, n=0, alpha=0.001) == (0.0, 1.0)
    assert e_process.share_band(share=0.1, n=10, alpha=0.001) == (0.0, 1.0)
    assert e_process.share_band(share=1.0, n=10, alpha=0.001) == (1.0, 1.0)
    low, high = e_process.share_band(share=0.1, n=10_000, alpha=0.001)
    assert (round(low, 3), round(high, 3)) == (0.088, 0.113)

    dice = random.Random(3)
    left = 0
    for _ in range(200):
        hits = 0
        for interval in range(1, 21):
            hits += sum(dice.random() < 0.1 for _ in range(25))
            low, high = e_process.share_band(share=0.1, n=25 * interval, alpha=0.05)
            if not low <= hits / (25 * interval) <= high:
                left += 1
                break
    assert left <= 10
