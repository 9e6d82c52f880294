"""How often the sequential tests send a good candidate home, and how soon a bad one.

Simulated rollouts 5 → 25 → 50 %, ten minutes each, read every five seconds, 100 requests a second:
1. 10,000 with equal revisions (1 % errors, 20 ms, deviation as large as the mean): false aborts;
2. the same with the candidate exactly at its limits, the worst case that is still allowed;
3. twice the errors from the start, twice the errors from the second step on, and 40 % slower:
   power and time to detection.
Beside them, on the same streams, the threshold rules of two other tools as their documentation
shows them, once with their own limit and once with ours: Flagger (checks each minute, the fifth
failed check since the start rolls back) and Argo Rollouts (measures each five minutes, the fourth
failed measurement aborts). They judge the error rate only.

The tests run in arrays here; the first streams are run through the product's own code too, and both
must abort at the same interval.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from deployments.guards.domain import counter_verdicts, e_process, sequential_tests
from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain.counter_verdicts import Judging
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.sequential_tests import Side, StepTests
from tests.benchmarks.result import Result

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

ROLLOUTS = 10_000
ALPHA = 0.01
WEIGHTS = (0.05, 0.25, 0.50)
INTERVALS = 120
INTERVAL_SECONDS = 5
REQUESTS = 500
BASE_ERRORS = 0.01
BASE_MS = 20.0
ERRORS, LATENCY = guard_limits.DEFAULTS
_COMPARED = 40
_SEED = 20261121


@dataclass(frozen=True, slots=True)
class Truth:
    """The candidate against stable, per step."""

    name: str
    errors: Sequence[float] = (1.0, 1.0, 1.0)
    slower: Sequence[float] = (1.0, 1.0, 1.0)

    def starts_at(self) -> int:
        pairs = zip(self.errors, self.slower, strict=True)
        bad = [step for step, pair in enumerate(pairs) if max(pair) > 1]
        return bad[0] * INTERVALS if bad else 0


@dataclass(frozen=True, slots=True)
class Streams:
    """Rows are rollouts, columns intervals; milliseconds are sums over successes."""

    stable_n: Ints
    stable_failed: Ints
    stable_ms: Floats
    candidate_n: Ints
    candidate_failed: Ints
    candidate_ms: Floats


def simulate(truth: Truth, *, rollouts: int, seed: int) -> Streams:
    random = np.random.default_rng(seed)
    parts = [
        _step(random, rollouts, weight, errors=truth.errors[i], slower=truth.slower[i])
        for i, weight in enumerate(WEIGHTS)
    ]
    return Streams(*(np.concatenate(columns, axis=1) for columns in zip(*parts, strict=True)))


def _step(
    random: np.random.Generator, rollouts: int, weight: float, *, errors: float, slower: float
) -> tuple[NDArray[np.generic], ...]:
    shape = (rollouts, INTERVALS)
    candidate = random.binomial(REQUESTS, weight, shape)
    stable = REQUESTS - candidate
    arrays: list[NDArray[np.generic]] = []
    for n, rate, mean in (
        (stable, BASE_ERRORS, BASE_MS),
        (candidate, BASE_ERRORS * errors, BASE_MS * slower),
    ):
        failed = random.binomial(n, rate)
        # A sum of exponential times is a gamma variable.
        spent = random.standard_gamma(np.maximum(n - failed, 1e-9)) * mean
        arrays += [n, failed, np.round(spent, 3)]
    return tuple(arrays)


def aborts(streams: Streams) -> Ints:
    """The interval at which each rollout is aborted; -1 when it never is."""
    alpha = counter_verdicts.alpha_of_one_test(ALPHA, tests=2, steps=len(WEIGHTS))
    rollouts, total = streams.stable_n.shape
    aborted = np.full(rollouts, -1)
    for step in range(len(WEIGHTS)):
        ratio, floor, latency = _Capital(rollouts), _Capital(rollouts), _Capital(rollouts)
        blocks = _Blocks(rollouts)
        for t in range(step * INTERVALS, min(total, (step + 1) * INTERVALS)):
            n_c, x_c = streams.candidate_n[:, t], streams.candidate_failed[:, t]
            n_s, x_s = streams.stable_n[:, t], streams.stable_failed[:, t]
            most = (ERRORS.max_ratio or 1.0) * n_c
            ratio.bet(x_c, x_c + x_s, most / (most + n_s))
            floor.bet(x_c, n_c, np.full(rollouts, ERRORS.ignore_below))
            worse, is_block = blocks.add(streams, t)
            latency.bet(worse, is_block, np.full(rollouts, e_process.SIGN_CHANCE))
            says = np.minimum(ratio.peak, floor.peak) >= 1 / alpha
            says |= latency.peak >= 1 / alpha
            aborted = np.where((aborted < 0) & says, t, aborted)
    return aborted


class _Capital:
    """`sequential.suspicion` of many rollouts at once."""

    def __init__(self, rollouts: int) -> None:
        self._capital = np.zeros((len(e_process.WORSE), rollouts))
        self._intervals = np.zeros(rollouts)
        self._rhos = np.array(e_process.WORSE)[:, None]
        self.peak = np.ones(rollouts)

    def bet(self, hits: Ints, trials: Ints, chance: Floats) -> None:
        is_bet = trials > 0
        intervals = self._intervals + is_bet
        fresh = np.where(is_bet, 1 / np.maximum(intervals * (intervals + 1), 1), 0.0)
        power = hits * np.log(self._rhos) - trials * np.log1p((self._rhos - 1) * chance)
        capital = np.minimum(1e100, (self._capital + fresh) * np.exp(np.minimum(power, 230.0)))
        self._capital = np.where(is_bet, capital, self._capital)
        self._intervals = intervals
        value = self._capital.mean(axis=0) + 1 / (intervals + 1)
        self.peak = np.where(is_bet, np.maximum(self.peak, value), self.peak)


class _Blocks:
    """Intervals put together until both sides have enough successes to compare means."""

    def __init__(self, rollouts: int) -> None:
        self._sums = np.zeros((4, rollouts))

    def add(self, streams: Streams, t: int) -> tuple[Ints, Ints]:
        self._sums += np.stack(
            [
                streams.stable_n[:, t] - streams.stable_failed[:, t],
                streams.candidate_n[:, t] - streams.candidate_failed[:, t],
                streams.stable_ms[:, t],
                streams.candidate_ms[:, t],
            ]
        )
        n_s, n_c, ms_s, ms_c = self._sums
        is_full = np.minimum(n_s, n_c) >= e_process.SIGN_REQUESTS
        base = ms_s / np.maximum(n_s, 1)
        most = np.maximum((LATENCY.max_ratio or 1.0) * base, base + LATENCY.ignore_below)
        worse = is_full & (ms_c / np.maximum(n_c, 1) > most)
        self._sums = np.where(is_full, 0.0, self._sums)
        return worse.astype(np.int64), is_full.astype(np.int64)


def aborts_in_product(streams: Streams, row: int) -> int:
    """The same by the code that judges rollouts."""
    limits: tuple[GuardLimit, ...] = guard_limits.DEFAULTS
    alpha = counter_verdicts.alpha_of_one_test(ALPHA, tests=2, steps=len(WEIGHTS))
    for t in range(streams.stable_n.shape[1]):
        if t % INTERVALS == 0:
            tests = StepTests()
        side = Side(
            _sums(streams.stable_n, streams.stable_failed, streams.stable_ms, row, t),
            _sums(streams.candidate_n, streams.candidate_failed, streams.candidate_ms, row, t),
        )
        tests = sequential_tests.advance(tests, side, limits=limits)
        by = Judging(tests=tests, alpha=alpha, is_strict=False, min_requests=0)
        if any(counter_verdicts.is_worse(limit, by) for limit in limits):
            return t
    return -1


def _sums(n: Ints, failed: Ints, ms: Floats, row: int, t: int) -> Sums:
    success = int(n[row, t] - failed[row, t])
    duration_us = round(float(ms[row, t]) * 1000)
    return Sums(success=success, failure=int(failed[row, t]), duration_us=duration_us)


def threshold_rule(streams: Streams, *, every: int, most: float, failures: int) -> Ints:
    """Aborts at the given failed measurement of the candidate's error rate over `every` intervals."""
    rollouts, total = streams.candidate_n.shape
    windows = total // every
    shape = (rollouts, windows, every)
    n = streams.candidate_n[:, : windows * every].reshape(shape).sum(axis=2)
    failed = streams.candidate_failed[:, : windows * every].reshape(shape).sum(axis=2)
    count = np.cumsum((n > 0) & (failed > most * n), axis=1)
    is_over = count >= failures
    at = (np.argmax(is_over, axis=1) + 1) * every - 1
    return np.where(is_over.any(axis=1), at, -1)


def _flagger(most: float) -> Callable[[Streams], Ints]:
    return lambda streams: threshold_rule(streams, every=12, most=most, failures=5)


def _argo(most: float) -> Callable[[Streams], Ints]:
    return lambda streams: threshold_rule(streams, every=60, most=most, failures=4)


_OURS = BASE_ERRORS * (ERRORS.max_ratio or 1.0)
RULES: dict[str, Callable[[Streams], Ints]] = {
    "Slipway": aborts,
    "Flagger, its example (99 %)": _flagger(0.01),
    "Flagger, our limit (98.75 %)": _flagger(_OURS),
    "Argo, its example (95 %)": _argo(0.05),
    "Argo, our limit (98.75 %)": _argo(_OURS),
}
GOOD = (
    Truth("equal revisions"),
    Truth("at the limits", errors=(1.25,) * 3, slower=(1.25,) * 3),
)
BAD = (
    Truth("twice the errors", errors=(2.0,) * 3),
    Truth("twice the errors from the second step", errors=(1.0, 2.0, 2.0)),
    Truth("40 % slower", slower=(1.4,) * 3),
)


def agree_with_product(streams: Streams, aborted: Ints, *, rows: int = _COMPARED) -> None:
    for row in range(rows):
        if (own := aborts_in_product(streams, row)) != aborted[row]:
            raise AssertionError(
                f"stream {row}: arrays abort at {aborted[row]}, the product at {own}"
            )


def main() -> Result:
    print(__doc__)
    began = time.monotonic()
    shares: list[float] = []
    for truth in (*GOOD, *BAD):
        rollouts = ROLLOUTS if truth in GOOD else ROLLOUTS // 10
        streams = simulate(truth, rollouts=rollouts, seed=_SEED)
        print(f"{truth.name} ({rollouts:,} rollouts)")
        for rule, judge in RULES.items():
            verdicts = judge(streams)
            _print(rule, verdicts, truth)
            if rule == "Slipway":
                agree_with_product(streams, verdicts)
                shares += [float((verdicts >= 0).mean())] if truth in GOOD else []
    print(f"\n{time.monotonic() - began:.0f} s")
    return Result("sequential", round(100 * max(shares), 3), 100 * ALPHA, "% false aborts")


def _print(rule: str, values: Ints, truth: Truth) -> None:
    aborted = values[values >= 0]
    line = f"  {rule:<30} aborts {len(aborted) / len(values):7.2%}"
    if truth in BAD:
        early = values[(values >= 0) & (values < truth.starts_at())]
        after = aborted[aborted >= truth.starts_at()] - truth.starts_at() + 1
        line += f"   {_when(after)}   before it was bad {len(early)}"
    print(line)


def _when(after: Ints) -> str:
    if not len(after):
        return "never"
    middle, late = (np.quantile(after, share) * INTERVAL_SECONDS for share in (0.5, 0.9))
    return f"after {middle:5.0f} s (90 %: {late:5.0f} s)"
