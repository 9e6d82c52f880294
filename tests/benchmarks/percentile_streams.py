"""Percentile guards on histograms of Istio, through the product's own functions.

Lognormal times (median 50 ms, p95 114 ms), 100 requests a second, 5 → 25 → 50% in steps of ten minutes,
a reading each 10 s. Equal revisions that slow down together, and candidates that are slower.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deployments.guards.domain import counter_verdicts, percentile_tests
from deployments.guards.domain.betting.blocks import CALM
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentiles import PercentileGuard

Floats = NDArray[np.float64]
SECONDS = 10
_STEP = 60
_WEIGHTS = (0.05, 0.25, 0.50)
_BOUNDS = (0.5, 1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)
_MEDIAN_MS, _SIGMA, _PER_SECOND = 50.0, 0.5, 100
GUARD = PercentileGuard(metric="latency_p95", max_ratio=1.25)
_ALPHA = counter_verdicts.alpha_of_one_test(0.01, tests=2)
_TOTAL = _STEP * len(_WEIGHTS)
Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class PercentileWorld:
    """`load` slows both sides down, each on its own where `is_shared` is False; `seconds` is what was promised until a bad candidate is found, at
    the second step's weight; `tail` only slows the slowest so many down.
    """

    name: str
    load: Callable[[Random], Floats]
    slower: float = 1.0
    tail: float = 1.0
    seconds: float = 0.0
    block_seconds: float = CALM
    is_shared: bool = True


def _quiet(random: Random) -> Floats:
    return np.ones(_TOTAL)


def _step(random: Random) -> Floats:
    return np.where(np.arange(_TOTAL) >= 30, 2.0, 1.0)


def _ramp(random: Random) -> Floats:
    return np.linspace(1.0, 2.0, _TOTAL)


def _stalls(random: Random) -> Floats:
    return np.where(random.random(_TOTAL) < 0.05, 10.0, 1.0)


GOOD = (
    PercentileWorld("equal", _quiet),
    PercentileWorld("both sides x2 from minute 5", _step),
    PercentileWorld("both sides x2 over 30 min", _ramp),
    PercentileWorld("shared stalls of 10 s, 1 in 20", _stalls),
    PercentileWorld("own stalls of 10 s, 1 in 20", _stalls, is_shared=False, block_seconds=30.0),
    PercentileWorld("at the limit, 25% slower", _quiet, slower=1.25),
)
BAD = (
    PercentileWorld("40% slower", _quiet, slower=1.4, seconds=190),
    PercentileWorld("x2", _quiet, slower=2.0, seconds=110),
    PercentileWorld("the slowest 10% x2", _quiet, slower=2.0, tail=0.1, seconds=130),
)


def found_at(world: PercentileWorld, random: Random, *, first_step: int = 0) -> int:
    """The reading at which a rollout is aborted; -1 when it never is."""
    load = world.load(random)
    own = load if world.is_shared else world.load(random)
    past = _counts(random, 500_000, 1.0, world, is_candidate=False)
    tests = percentile_tests.begin(PercentileTests(block_seconds=world.block_seconds), past)
    for t in range(first_step * _STEP, _TOTAL):
        if t % _STEP == 0:
            tests = percentile_tests.next_step(
                tests, (GUARD,), Payoff.CAPPED, block_seconds=world.block_seconds
            )
        n = random.poisson(_PER_SECOND * SECONDS)
        mine = int(random.binomial(n, _WEIGHTS[t // _STEP]))
        tests = percentile_tests.advance(
            tests,
            stable=_counts(random, n - mine, load[t], world, is_candidate=False),
            candidate=_counts(random, mine, own[t], world, is_candidate=True),
            guards=(GUARD,),
            seconds=SECONDS,
        )
        if percentile_tests.evidence_of(GUARD, tests) >= 1 / _ALPHA:
            return t - first_step * _STEP
    return -1


def _counts(
    random: Random, n: int, load: float, world: PercentileWorld, *, is_candidate: bool
) -> dict[float, int]:
    slower = world.slower if is_candidate else 1.0
    below = [_share_below(bound / load, slower, world.tail) for bound in _BOUNDS]
    buckets = np.diff([0.0, *below, 1.0])
    cumulated = np.cumsum(random.multinomial(n, np.maximum(buckets, 0.0)))
    return {
        float(bound): int(count)
        for bound, count in zip((*_BOUNDS, math.inf), cumulated, strict=True)
    }


def _share_below(bound: float, slower: float, tail: float) -> float:
    if tail == 1.0:
        return _normal(bound / slower)
    # The slowest part is slowed down, the others stay as they are.
    fast = 1 - tail
    return min(_normal(bound), fast) + max(0.0, _normal(bound / slower) - fast)


def _normal(bound: float) -> float:
    return 0.5 * math.erfc(-math.log(bound / _MEDIAN_MS) / (_SIGMA * math.sqrt(2)))
