"""Rules of other tools on the same streams, as their documentation shows them. They judge errors only.

- Flagger: a check each minute; the fifth failed check since the start rolls back.
- Argo Rollouts: a measurement each five minutes; the fourth failed one aborts.
- Kayenta: a Mann-Whitney test of the minutes of each ten, 98% confidence; the first that calls the
  canary higher ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from tests.benchmarks.blocks_twin import PAST, Flags, Ints, Streams
from tests.benchmarks.lanes_twin import ERRORS

_MINUTE = 12
# One side of 98%.
_Z = 2.326


def threshold(*, minutes: int, most: float, failures: int) -> Callable[[Streams], Ints]:
    """Aborts at the given failed measurement of the candidate's error rate."""

    def aborts(streams: Streams) -> Ints:
        n = _windows(streams.candidate_n, minutes * _MINUTE)
        failed = _windows(streams.candidate_failed, minutes * _MINUTE)
        count = np.cumsum((n > 0) & (failed > most * n), axis=1)
        return _first(count >= failures, minutes * _MINUTE)

    return aborts


def mann_whitney(streams: Streams) -> Ints:
    """Ten values of each side, compared at the end of every ten minutes."""
    sides = []
    for n, failed in (
        (streams.stable_n[:, PAST:], streams.stable_failed[:, PAST:]),
        (streams.candidate_n, streams.candidate_failed),
    ):
        rates = _windows(failed, _MINUTE) / np.maximum(_windows(n, _MINUTE), 1)
        sides.append(rates[:, : rates.shape[1] // 10 * 10].reshape(len(rates), -1, 10))
    above = sides[1][..., :, None] > sides[0][..., None, :]
    ties = sides[1][..., :, None] == sides[0][..., None, :]
    u = above.sum(axis=(2, 3)) + ties.sum(axis=(2, 3)) / 2
    z = (u - 50) / np.sqrt(10 * 10 * 21 / 12)
    return _first(z > _Z, 10 * _MINUTE)


def _windows(values: Ints, size: int) -> Ints:
    whole = values.shape[1] // size * size
    sums: Ints = values[:, :whole].reshape(len(values), -1, size).sum(axis=2)
    return sums


def _first(is_over: Flags, size: int) -> Ints:
    at = (np.argmax(is_over, axis=1) + 1) * size - 1
    return np.where(is_over.any(axis=1), at, -1)


def rules(base: float) -> Mapping[str, Callable[[Streams], Ints]]:
    """Each with the limit that the default guard has at this base rate."""
    most = base * (ERRORS.max_ratio or 1.0)
    return {
        "Flagger": threshold(minutes=1, most=most, failures=5),
        "Argo": threshold(minutes=5, most=most, failures=4),
        "Kayenta": mann_whitney,
    }
