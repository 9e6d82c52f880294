"""The tests of many rollouts at once, in arrays: a twin of the product's code for the benchmarks.

`agree_with_product` runs streams through the product's own functions too, and both must abort at the
same reading.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deployments.guards.domain import counter_verdicts, sequential_tests
from deployments.guards.domain import limits as guard_limits
from deployments.guards.domain.betting import e_process, rates
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.e_process import Payoff
from deployments.guards.domain.betting.slots import SLOT_SECONDS
from deployments.guards.domain.counter_verdicts import CounterInputs
from deployments.guards.domain.counters import Sums
from deployments.guards.domain.sequential_tests import Procedure
from deployments.guards.domain.step_tests import Side, StepTests
from tests.benchmarks.blocks_twin import (
    Flags,
    Floats,
    Ints,
    Streams,
    lengths_at,
    product_lengths,
)

ALPHA = 0.01
TESTS = 2
ERRORS, _, LATENCY = guard_limits.DEFAULTS
_RATIO = ERRORS.max_ratio or 1.0


class _Capital:
    """`Wealth` of many rollouts."""

    def __init__(self, rollouts: int) -> None:
        self._capital = np.zeros((len(e_process.WORSE), rollouts))
        self._intervals = np.zeros(rollouts)
        self._rhos = np.array(e_process.WORSE)[:, None]
        self.peak = np.ones(rollouts)

    def bet(
        self, hits: NDArray[Any], trials: NDArray[Any], chance: Floats | float,
        payoff: Payoff = Payoff.FULL,
    ) -> None:  # fmt: skip
        is_bet = trials > 0
        if not is_bet.any():
            return
        intervals = self._intervals + is_bet
        fresh = np.where(is_bet, 1 / np.maximum(intervals * (intervals + 1), 1), 0.0)
        power = hits * np.log(self._rhos) - trials * np.log1p((self._rhos - 1) * chance)
        factor = np.exp(np.minimum(power, 230.0))
        if payoff is Payoff.CAPPED:
            factor = np.minimum(2.0, factor)
        elif payoff is Payoff.SYMMETRIC:
            factor = 2 * factor / (1 + factor)
        capital = np.minimum(1e100, (self._capital + fresh) * factor)
        self._capital = np.where(is_bet, capital, self._capital)
        self._intervals = intervals
        value = self._capital.mean(axis=0) + 1 / (intervals + 1)
        self.peak = np.where(is_bet, np.maximum(self.peak, value), self.peak)


def _chance(ratio: float, n_c: NDArray[Any], n_s: NDArray[Any]) -> Floats:
    share: Floats = ratio * n_c / np.maximum(ratio * n_c + n_s, 1e-9)
    return share


class ErrorTest:
    """The default limit of an error rate, in both lanes."""

    def __init__(self, rollouts: int, payoff: Payoff) -> None:
        self._payoff = payoff
        self._ratio, self._twice, self._floor = (_Capital(rollouts) for _ in range(3))
        self._fast_ratio, self._fast_floor = _Capital(rollouts), _Capital(rollouts)
        self._block = np.zeros((4, rollouts))
        self._seconds = np.zeros(rollouts)

    def read(self, n_c: Ints, x_c: Ints, n_s: Ints, x_s: Ints, lengths: Floats) -> None:
        self._block += np.stack([n_c, x_c, n_s, x_s])
        self._seconds += SLOT_SECONDS
        self._close(self._seconds >= 0.9 * lengths)
        limit = rates.RateLimit(None, _RATIO, None)
        self._fast_ratio.bet(x_c, x_c + x_s, _chance(limit.gross_ratio, n_c, n_s))
        self._fast_floor.bet(x_c, n_c, limit.gross_floor)

    def cut(self) -> None:
        self._close(self._seconds > 0)

    def _close(self, is_closed: Flags) -> None:
        n_c, x_c, n_s, x_s = self._block * is_closed
        self._ratio.bet(x_c, x_c + x_s, _chance(_RATIO, n_c, n_s), self._payoff)
        self._twice.bet(x_c, x_c + x_s, _chance(rates.FLOOR_RATIO, n_c, n_s), self._payoff)
        self._floor.bet(x_c, n_c, rates.FLOOR, self._payoff)
        self._block = np.where(is_closed, 0.0, self._block)
        self._seconds = np.where(is_closed, 0.0, self._seconds)

    @property
    def evidence(self) -> Floats:
        floor = np.maximum(self._floor.peak, self._twice.peak) / 2
        slow = np.minimum(self._ratio.peak, floor)
        fast = np.minimum(self._fast_ratio.peak, self._fast_floor.peak)
        both: Floats = np.maximum(slow, fast) / 2
        return both


class LatencyTest:
    """The default limit of a mean latency, in both lanes."""

    def __init__(self, rollouts: int, payoff: Payoff) -> None:
        self._payoff = payoff
        self._slow, self._fast = _Capital(rollouts), _Capital(rollouts)
        self._block, self._now = np.zeros((4, rollouts)), np.zeros((4, rollouts))
        self._seconds = np.zeros(rollouts)

    def read(
        self, timed: Sequence[NDArray[Any]], lengths: Floats, *, is_warming: bool = False
    ) -> None:
        """While the candidate warms up only the fast lane judges its times."""
        added = np.stack([np.asarray(column, float) for column in timed])
        self._block += added * np.array([1.0, 0.0, 1.0, 0.0])[:, None] if is_warming else added
        self._now += added
        self._seconds += SLOT_SECONDS
        self._close(self._seconds >= 0.9 * lengths)
        is_closed, mine, base = _means(self._now)
        limit = np.maximum(_most(base) * 2, base + 20.0)
        self._fast.bet(is_closed & (mine > limit), is_closed, e_process.SIGN_CHANCE)
        self._now = np.where(is_closed, 0.0, self._now)

    def cut(self) -> None:
        self._close(self._seconds > 0)
        self._block, self._now = np.zeros_like(self._block), np.zeros_like(self._now)
        self._seconds = np.zeros_like(self._seconds)

    def _close(self, is_due: Flags) -> None:
        is_full, mine, base = _means(self._block)
        is_closed = is_due & is_full
        hits = is_closed & (mine > _most(base))
        self._slow.bet(hits, is_closed, e_process.SIGN_CHANCE, self._payoff)
        self._block = np.where(is_closed, 0.0, self._block)
        self._seconds = np.where(is_closed, 0.0, self._seconds)

    @property
    def evidence(self) -> Floats:
        both: Floats = np.maximum(self._slow.peak, self._fast.peak) / 2
        return both


def _means(block: Floats) -> tuple[Flags, Floats, Floats]:
    n_s, n_c, ms_s, ms_c = block
    is_full = (n_s >= e_process.SIGN_REQUESTS) & (n_c >= e_process.SIGN_REQUESTS_OF_CANDIDATE)
    return is_full, ms_c / np.maximum(n_c, 1), ms_s / np.maximum(n_s, 1)


def _most(base: Floats) -> Floats:
    most: Floats = np.maximum(
        (LATENCY.max_ratio or 1.0) * base, base + (LATENCY.ignore_below or 0.0)
    )
    return most


def aborts(
    streams: Streams,
    *,
    is_latency_judged: bool = True,
    payoff: Payoff = Payoff.CAPPED,
    least_seconds: float = 0.0,
) -> Ints:
    """The reading at which each rollout is aborted; -1 when it never is. `least_seconds` of a block of
    failures.
    """
    needed = 1 / counter_verdicts.alpha_of_one_test(ALPHA, tests=TESTS)
    errors = ErrorTest(streams.rollouts, payoff)
    latency = LatencyTest(streams.rollouts, payoff)
    aborted = np.full(streams.rollouts, -1)
    for t in range(streams.readings):
        if t in streams.starts:
            errors.cut()
            latency.cut()
        if streams.chooses(t):
            of_errors, of_means = lengths_at(streams, t)
            of_errors = np.maximum(least_seconds, of_errors)
        n_c, x_c, ms_c = streams.candidate(t)
        n_s, x_s, ms_s = streams.stable(t)
        errors.read(n_c, x_c, n_s, x_s, of_errors)
        says = errors.evidence >= needed
        if is_latency_judged:
            timed = (n_s - x_s, n_c - x_c, ms_s, ms_c)
            latency.read(timed, of_means, is_warming=t < streams.warm_readings)
            says |= latency.evidence >= needed
        aborted = np.where((aborted < 0) & says, t, aborted)
    return aborted


def aborts_in_product(streams: Streams, row: int, *, payoff: Payoff = Payoff.CAPPED) -> int:
    """The same of one rollout by the code that judges rollouts."""
    limits = (ERRORS, LATENCY)
    alpha = counter_verdicts.alpha_of_one_test(ALPHA, tests=TESTS)
    procedure, tests = Procedure(limits, payoff), StepTests()
    for t in range(streams.readings):
        if t in streams.starts:
            tests = sequential_tests.next_step(tests, procedure, BlockLengths())
        if streams.chooses(t):
            tests = replace(tests, lengths=product_lengths(streams, row, t))
        uncut = Side(_reading(streams.stable(t), row), _reading(streams.candidate(t), row))
        interval = uncut
        if t < streams.warm_readings:
            cold = uncut.candidate
            interval = replace(uncut, candidate=replace(cold, duration_us=0, untimed=cold.success))
        tests = sequential_tests.advance(tests, interval, procedure=procedure, uncut=uncut)
        by = CounterInputs(tests=tests, alpha=alpha, is_strict=False, min_requests=0)
        if any(counter_verdicts.is_worse(limit, by) for limit in limits):
            return t
    return -1


def _reading(columns: tuple[Ints, Ints, Floats], row: int) -> Sums:
    n, failed, ms = (column[row] for column in columns)
    return Sums(success=int(n - failed), failure=int(failed), duration_us=round(float(ms) * 1000))


def agree_with_product(streams: Streams, aborted: Ints, *, rows: int) -> None:
    for row in range(rows):
        own = aborts_in_product(streams, row)
        if own != aborted[row]:
            raise AssertionError(
                f"stream {row}: arrays abort at {aborted[row]}, the product at {own}"
            )
