"""Where the assumptions of the sequential tests hold, and where they fail: equal revisions, ugly
streams.

Rollouts as in `sequential`, the candidate equal to stable in the long run. What the tests allow for:
- times with heavy tails, and requests of one interval that are slow or fail together on both sides,
  because a test of means takes an interval as one trial and observes both sides at the same time;
- load that slows both sides down for minutes.
What they do not: a side that has bad minutes of its own. There a candidate is worse than stable for
as long as they last, which is what its guard forbids; in the long run it would be even. These are
printed too, so that the limits of the guarantee are known.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from tests.benchmarks.result import Result
from tests.benchmarks.sequential import (
    ALPHA,
    BASE_ERRORS,
    BASE_MS,
    INTERVALS,
    REQUESTS,
    WEIGHTS,
    Floats,
    Ints,
    Streams,
    aborts,
)

ROLLOUTS: Final = 400
_SEED: Final = 20261122
_TOTAL: Final = INTERVALS * len(WEIGHTS)
Random = np.random.Generator


@dataclass(frozen=True, slots=True)
class World:
    """`slow` and `failing` are factors per interval, of stable and of the candidate."""

    name: str
    is_promised: bool
    slow: Callable[[Random], tuple[Floats, Floats]] | None = None
    failing: Callable[[Random], tuple[Floats, Floats]] | None = None
    tail: float = 0.0


def drift(random: Random, *, phi: float, deviation: float) -> Floats:
    """A stationary autoregressive series: each interval remembers `phi` of the one before."""
    values = np.empty((ROLLOUTS, _TOTAL))
    values[:, 0] = random.normal(0, deviation, ROLLOUTS)
    for t in range(1, _TOTAL):
        fresh = random.normal(0, deviation, ROLLOUTS)
        values[:, t] = phi * values[:, t - 1] + np.sqrt(1 - phi**2) * fresh
    return values


def _shared_load(random: Random) -> tuple[Floats, Floats]:
    both = np.exp(drift(random, phi=0.95, deviation=0.5))
    return both, both


def _shared_bursts(random: Random) -> tuple[Floats, Floats]:
    """One interval in twenty, in a row: ten times the failures on both sides."""
    both = np.where(drift(random, phi=0.95, deviation=1) > 1.645, 10.0, 1.0)
    return both, both


def _each(draw: Callable[[], Floats]) -> tuple[Floats, Floats]:
    return draw(), draw()


def _jitter_of_each(random: Random) -> tuple[Floats, Floats]:
    """Each interval of each side on its own; nothing lasts."""
    return _each(lambda: np.exp(drift(random, phi=0.0, deviation=0.3)))


def _minutes_of_each(random: Random) -> tuple[Floats, Floats]:
    return _each(lambda: np.exp(drift(random, phi=0.9, deviation=0.2)))


def _bursts_of_each(random: Random) -> tuple[Floats, Floats]:
    return _each(lambda: np.where(drift(random, phi=0.0, deviation=1) > 1.645, 10.0, 1.0))


WORLDS: Final = (
    World("times with a heavy tail (lognormal, deviation 7 x mean)", True, tail=2.0),
    World("load that slows both sides for minutes", True, slow=_shared_load),
    World("failures in bursts on both sides", True, failing=_shared_bursts),
    World("each side's intervals jitter by 30 %", True, slow=_jitter_of_each),
    World("each side has slow minutes of its own (20 %)", False, slow=_minutes_of_each),
    World(
        "each side has bursts of its own (10 x, 1 interval in 20)", False, failing=_bursts_of_each
    ),
)


def simulate(world: World, random: Random) -> Streams:
    weights = np.repeat(WEIGHTS, INTERVALS)
    candidate = random.binomial(REQUESTS, weights, (ROLLOUTS, _TOTAL))
    one = np.ones((ROLLOUTS, _TOTAL))
    slow = world.slow(random) if world.slow else (one, one)
    failing = world.failing(random) if world.failing else (one, one)
    stable = REQUESTS - candidate
    stable_failed = random.binomial(stable, np.minimum(1.0, BASE_ERRORS * failing[0]))
    failed = random.binomial(candidate, np.minimum(1.0, BASE_ERRORS * failing[1]))
    return Streams(
        stable_n=stable,
        stable_failed=stable_failed,
        stable_ms=slow[0] * _times(random, stable - stable_failed, world.tail),
        candidate_n=candidate,
        candidate_failed=failed,
        candidate_ms=slow[1] * _times(random, candidate - failed, world.tail),
    )


def _times(random: Random, n: Ints, tail: float) -> Floats:
    """Sums of so many times each; their mean is BASE_MS whatever the tail."""
    if not tail:
        return random.standard_gamma(np.maximum(n, 1e-9)) * BASE_MS
    times = np.zeros(n.shape)
    for row in range(len(n)):
        each = random.lognormal(-(tail**2) / 2, tail, int(n[row].sum()) + 1) * BASE_MS
        starts = np.concatenate([[0], np.cumsum(n[row])[:-1]])
        times[row] = np.where(n[row] > 0, np.add.reduceat(each, starts), 0.0)
    return times


def main() -> Result:
    print(__doc__)
    promised: list[float] = []
    for world in WORLDS:
        share = float((aborts(simulate(world, np.random.default_rng(_SEED))) >= 0).mean())
        promised += [share] if world.is_promised else []
        promise = "promised" if world.is_promised else "not promised"
        print(f"  {world.name:<60} aborts {share:7.2%}   {promise}", flush=True)
    return Result("dependence", round(100 * max(promised), 3), 100 * ALPHA, "% false aborts")
