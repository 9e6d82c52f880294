"""Language models through the product's own functions: first tokens, later tokens, and clients that leave.

Five requests a second, 100 to 400 tokens an answer, 5 → 25 → 50% in steps of ten minutes, a reading each 5 s. An answer
that is being generated counts its tokens in the readings in which it gets them. The mean latency of whole answers is no
guard of a language model: a candidate that answers at twice the length is as good.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from deployments.guards.domain import counter_verdicts, limits, sequential_tests
from deployments.guards.domain.betting import blocks
from deployments.guards.domain.betting.slots import SLOT_SECONDS, Slot
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests

Floats = NDArray[np.float64]
Random = np.random.Generator
_STEP: Final = 120
_WEIGHTS: Final = (0.05, 0.25, 0.50)
_TOTAL: Final = _STEP * len(_WEIGHTS)
_HOUR: Final = 720
_PER_SECOND: Final = 5.0
_TOKENS: Final = (100, 400)
_FIRST_MS, _LATER_MS = 300.0, 20.0
_FAILING, _ABORTED = 0.005, 0.02
_COUNTED: Final = SideFacts(aborts_counted=1.0)
_LIMITS: Final = (
    *(limit for limit in limits.DEFAULTS_OF_TOKENS if limit.metric != "lost_requests"),
    GuardLimit(metric="tokens_per_second", max_ratio=1.25),
    GuardLimit(metric="aborted_requests", max_ratio=1.25),
)
_PROCEDURE: Final = Procedure(_LIMITS, stable=_COUNTED, candidate=_COUNTED)
_ALPHA: Final = counter_verdicts.alpha_of_one_test(0.01, tests=len(_LIMITS))


@dataclass(frozen=True, slots=True)
class LanguageWorld:
    """What the candidate's figures are multiplied by. `load` slows both sides down, or each on its own; `seconds`
    were promised until a bad one is found at the second step.
    """

    name: str
    load: Callable[[Random], Floats]
    is_shared: bool = True
    first: float = 1.0
    later: float = 1.0
    length: float = 1.0
    aborted: float = 1.0
    seconds: float = 0.0


def _quiet(random: Random) -> Floats:
    return np.ones(_HOUR + _TOTAL)


def _wander(random: Random) -> Floats:
    values, phi = np.zeros(_HOUR + _TOTAL), float(np.exp(-SLOT_SECONDS / 100))
    for t in range(1, len(values)):
        values[t] = phi * values[t - 1] + random.normal(0, 0.3 * np.sqrt(1 - phi**2))
    return np.exp(values)


def _stalls(random: Random) -> Floats:
    return np.where(random.random(_HOUR + _TOTAL) < 0.05, 5.0, 1.0)


GOOD: Final = (
    LanguageWorld("equal", _quiet),
    LanguageWorld("answers twice as long", _quiet, length=2.0),
    LanguageWorld("shared load wanders by 30%", _wander),
    LanguageWorld("shared stalls of 5 s", _stalls),
    LanguageWorld("own stalls of 5 s", _stalls, is_shared=False),
    LanguageWorld("at the limits, 25% slower", _quiet, first=1.25, later=1.25, aborted=1.25),
)
BAD: Final = (
    LanguageWorld("40% slower between tokens", _quiet, later=1.4, seconds=300),
    LanguageWorld("first token after x2", _quiet, first=2.0, seconds=150),
    LanguageWorld("x5 aborted", _quiet, aborted=5.0, seconds=420),
)


def found_at(world: LanguageWorld, *, seed: int, first_step: int = 0) -> int:
    """The reading at which a rollout is aborted; -1 when it never is."""
    random = np.random.default_rng(seed)
    load = world.load(random)
    own = load if world.is_shared else world.load(random)
    equal = LanguageWorld("stable", world.load)
    hour = [_sums(random, _PER_SECOND, load[t], equal) for t in range(_HOUR)]
    lengths = blocks.choose([[_slot(sums) for sums in hour]])
    tests = StepTests()
    for t in range(first_step * _STEP, _TOTAL):
        if t % _STEP == 0:
            tests = sequential_tests.next_step(tests, _PROCEDURE, lengths)
        weight = _WEIGHTS[t // _STEP]
        interval = Side(
            _sums(random, _PER_SECOND * (1 - weight), load[_HOUR + t], equal),
            _sums(random, _PER_SECOND * weight, own[_HOUR + t], world),
        )
        tests = sequential_tests.advance(tests, interval, procedure=_PROCEDURE)
        by = CounterInputs(
            tests=tests,
            alpha=_ALPHA,
            is_strict=False,
            min_requests=0,
            stable=_COUNTED,
            candidate=_COUNTED,
        )
        if any(counter_verdicts.is_worse(limit, by) for limit in _LIMITS):
            return t - first_step * _STEP
    return -1


def _sums(random: Random, per_second: float, load: float, world: LanguageWorld) -> Sums:
    """One reading."""
    n = int(random.poisson(per_second * SLOT_SECONDS))
    failed = int(random.binomial(n, _FAILING))
    aborted = int(random.binomial(n - failed, min(1.0, _ABORTED * world.aborted)))
    served = n - failed - aborted
    later = int(random.integers(*_TOKENS, size=n).sum() * world.length)
    first_ms = random.gamma(4.0, _FIRST_MS * world.first * load / 4.0, size=n).sum()
    # Batches differ, so tokens of a reading do not vary one by one.
    later_ms = later * _LATER_MS * world.later * load * random.gamma(100.0, 1 / 100.0)
    return Sums(
        success=served,
        failure=failed,
        duration_us=round((first_ms + later_ms) * 1000),
        aborted=aborted,
        tokens=n + later,
        first_tokens=n,
        first_token_us=round(first_ms * 1000),
        later_tokens=later,
        later_token_us=round(later_ms * 1000),
    )


def _slot(sums: Sums) -> Slot:
    return Slot(sums.requests, sums.failure, sums.timed, sums.duration_us)
