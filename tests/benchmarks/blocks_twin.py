"""Streams of many rollouts and the block lengths that each chooses: a twin of `blocks.choose` in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from deployments.guards.domain.betting import blocks, bursts
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.slots import SLOT_SECONDS, Slot

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

HOUR = 3600 // SLOT_SECONDS
MINUTE = 60 // SLOT_SECONDS
# What is simulated of stable before a rollout.
PAST = bursts.LEAST_MINUTES * MINUTE


@dataclass(frozen=True, slots=True)
class Streams:
    """Rows are rollouts, columns readings of 5 s; milliseconds are sums over successes. The first
    PAST readings of stable are those before the rollout, of which the last `known` were read; `starts` are
    the readings at which steps begin, counted from then.
    """

    starts: Sequence[int]
    stable_n: Ints
    stable_failed: Ints
    stable_ms: Floats
    candidate_n: Ints
    candidate_failed: Ints
    candidate_ms: Floats
    known: int = PAST
    # While they last the candidate warms up.
    warm_readings: int = 0

    @property
    def rollouts(self) -> int:
        return int(self.candidate_n.shape[0])

    @property
    def readings(self) -> int:
        return int(self.candidate_n.shape[1])

    def stable(self, t: int) -> tuple[Ints, Ints, Floats]:
        at = PAST + t
        return self.stable_n[:, at], self.stable_failed[:, at], self.stable_ms[:, at]

    def hour(self, t: int) -> slice:
        """The readings of stable's hour before reading `t`, as far as it was read."""
        return slice(PAST + t - min(HOUR, self.known + t), PAST + t)

    def minutes(self, t: int) -> slice:
        """The same for whole minutes of the last hours."""
        count = min(bursts.MOST_MINUTES, (self.known + t) // MINUTE)
        return slice(PAST + t - count * MINUTE, PAST + t)

    def chooses(self, t: int) -> bool:
        """Whether blocks are chosen before reading `t`."""
        grown = (self.known + t) * SLOT_SECONDS in blocks.HISTORY_SECONDS
        return t in self.starts or grown

    def candidate(self, t: int) -> tuple[Ints, Ints, Floats]:
        return self.candidate_n[:, t], self.candidate_failed[:, t], self.candidate_ms[:, t]


def lengths_at(streams: Streams, t: int) -> tuple[Floats, Floats]:
    """`blocks.choose` of each rollout for one pod, by what was read before reading `t`."""
    columns = (streams.stable_n, streams.stable_failed, streams.stable_ms)
    n, x, ms = (column[:, streams.hour(t)].astype(float) for column in columns)
    if n.shape[1] * SLOT_SECONDS < min(blocks.HISTORY_SECONDS):
        default = np.full(len(n), blocks.DEFAULT_SECONDS)
        return default, default
    has_none = _has_no_burst(
        *(column[:, streams.minutes(t)].astype(float) for column in columns[:2])
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        return _error_lengths(n, x, has_none), _mean_lengths(n - x, ms)


def _has_no_burst(n: Floats, x: Floats) -> Flags:
    """`bursts.has_none` of each rollout; every minute is taken to have requests."""
    has_none = np.full(len(n), n.shape[1] >= bursts.LEAST_MINUTES * MINUTE)
    newest_first = [_sums(values, 60.0)[:, ::-1] for values in (n, x)]
    for at in range(0, newest_first[0].shape[1], 60):
        requests, failures = (values[:, at : at + 60] for values in newest_first)
        rate = failures.sum(axis=1) / np.maximum(requests.sum(axis=1), 1)
        expected = rate[:, None] * requests
        has_none &= ~(failures > expected + 5.0 * np.sqrt(expected) + 3.0).any(axis=1)
    return has_none


def _sums(values: NDArray[Any], seconds: float) -> Floats:
    size = round(seconds / SLOT_SECONDS)
    whole = values.shape[1] // size * size
    sums: Floats = values[:, :whole].reshape(len(values), -1, size).sum(axis=2)
    return sums


def _memory(values: NDArray[Any]) -> tuple[Floats, Floats]:
    """Lag-1 autocorrelation over the blocks that have a value, and how many those are."""
    is_known = np.isfinite(values)
    counts = is_known.sum(axis=1).astype(float)
    # Those without a value go to the end, so that neighbours are neighbours.
    order = np.argsort(~is_known, axis=1, kind="stable")
    known = np.take_along_axis(is_known, order, axis=1)
    series = np.where(known, np.take_along_axis(values, order, axis=1), 0.0)
    mean = series.sum(axis=1) / np.maximum(counts, 1)
    off = np.where(known, series - mean[:, None], 0.0)
    total = (off**2).sum(axis=1)
    lag = (off[:, :-1] * off[:, 1:]).sum(axis=1) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, lag, 0.0), counts


def _most_lag(counts: Floats) -> Floats:
    most: Floats = np.minimum(blocks.MOST_LAG, 2 / np.sqrt(np.maximum(counts, 1)))
    return most


def _shortest(figure_of: dict[int, Floats], is_calm: Flags) -> Floats:
    lengths = np.full(len(is_calm), float(blocks.LENGTHS[-1]))
    for seconds in reversed(blocks.LENGTHS):
        lag, count = _memory(figure_of[seconds])
        is_short = (count >= 12) & (lag < _most_lag(count))
        lengths = np.where(is_short, float(seconds), lengths)
    return np.where(is_calm, 0.0, lengths)


def _error_lengths(n: Floats, x: Floats, has_none: Flags) -> Floats:
    figures = {s: _sums(x, s) / _sums(n, s) for s in (5, *blocks.LENGTHS)}
    is_long = n.shape[1] * SLOT_SECONDS >= 1800
    is_calm = has_none & (x.sum(axis=1) >= 50) & is_long
    for seconds in (5, 30):
        lag, count = _memory(figures[seconds])
        n_b, x_b = _sums(n, seconds), _sums(x, seconds)
        rate = (x.sum(axis=1) / n.sum(axis=1))[:, None]
        terms = np.where(n_b > 0, (x_b - rate * n_b) ** 2 / (n_b * rate * (1 - rate)), 0.0)
        dispersion = terms.sum(axis=1) / (count - 1)
        is_calm &= (lag < _most_lag(count)) & (dispersion < 1 + 2.5 * np.sqrt(2 / count))
    return _shortest(figures, is_calm)


def _mean_lengths(timed: Floats, ms: Floats) -> Floats:
    figures = {}
    for seconds in (5, *blocks.LENGTHS):
        figures[seconds] = np.log(_sums(ms, seconds) / _sums(timed, seconds))
    is_calm = np.ones(len(ms), bool)
    for seconds in (5, 30):
        lag, count = _memory(figures[seconds])
        is_calm &= (count >= 12) & (lag < _most_lag(count))
    return _shortest(figures, is_calm)


def product_lengths(streams: Streams, row: int, t: int) -> BlockLengths:
    columns = (streams.stable_n, streams.stable_failed, streams.stable_ms)
    slots = _slots(*(column[row, streams.hour(t)] for column in columns))
    by_minute = [_sums(column[row : row + 1, streams.minutes(t)], 60.0)[0] for column in columns]
    return blocks.choose([slots], _slots(*by_minute))


def _slots(n: NDArray[Any], x: NDArray[Any], ms: NDArray[Any]) -> list[Slot]:
    return [
        Slot(int(a), int(b), int(a - b), round(float(c) * 1000))
        for a, b, c in zip(n, x, ms, strict=True)
    ]
