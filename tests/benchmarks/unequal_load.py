"""One pod of each side and 5% of the traffic: the candidate's pod has no queue and no batches, so its busy time of an
inference is three times stable's, and its latency a third lower, whatever the code. Through the product's own functions.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from deployments.guards.domain import counter_verdicts, sequential_tests
from deployments.guards.domain.betting.blocks import CALM, BlockLengths
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.evidence import Verdict
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests

_ROLLOUTS: Final = 20
_READINGS: Final = 120
_LIMITS: Final = (
    GuardLimit(metric="latency_mean", max_ratio=1.25),
    GuardLimit(metric="throughput_per_gpu", max_ratio=1.25),
)
_LOAD: Final = PodLoad(stable=95, candidate=5, stable_pods=1, candidate_pods=1)
_BATCH: Final = 3


def false_aborts() -> float:
    """Percent of equal candidates that are aborted. Raises AssertionError where one of equal code, or 40% slower, passes."""
    aborted = 0
    for slower in (1.0, 1.4):
        verdicts = [_verdicts(seed, slower) for seed in range(_ROLLOUTS)]
        failed = sum(Verdict.FAILED in of_one for of_one in verdicts)
        judged = sum(set(of_one) != {Verdict.NOT_COMPARABLE} for of_one in verdicts)
        print(
            f"  {slower:g} times the time: {failed} of {_ROLLOUTS} aborted, {judged} passed or aborted",
            flush=True,
        )
        assert judged == failed, "times of another load pass"
        aborted += failed
    return 100 * aborted / (2 * _ROLLOUTS)


def _verdicts(seed: int, slower: float) -> list[str]:
    random = np.random.default_rng(seed)
    tests = StepTests(lengths=BlockLengths(CALM, CALM, is_from_history=True))
    procedure = Procedure(_LIMITS)
    for _ in range(_READINGS):
        interval = Side(
            _sums(random, 475, wait_ms=10.0, batch=_BATCH, slower=1.0),
            _sums(random, 25, wait_ms=0.0, batch=1, slower=slower),
        )
        tests = sequential_tests.advance(
            tests, interval, procedure=procedure, load=_LOAD.difference
        )
    by = CounterInputs(tests=tests, alpha=0.005, is_strict=False, min_requests=100, load=_LOAD)
    return [result.verdict for result in counter_verdicts.judge(_LIMITS, by)]


def _sums(
    random: np.random.Generator, mean: float, *, wait_ms: float, batch: int, slower: float
) -> Sums:
    n = int(random.poisson(mean)) + 1
    ms = random.gamma(4.0, (20.0 * slower + wait_ms) / 4.0, size=n).sum()
    return Sums(
        success=n,
        inferences=n,
        duration_us=round(ms * 1000),
        queue_us=round(n * wait_ms * 1000),
        busy_ms=round(n * 20.0 * slower / batch),
        observed_ms=5000,
    )
