"""Percentiles by the share of slow requests: more of them than stable has in the same time.

For each bound t of a histogram, X of the candidate's requests and Y of stable's took longer than t.
Stable's percentile of a quiet hour is never held against the candidate's of a busy one: both counts
are of the same readings, and the bet is that of two rates (`e_process`). Allowed is `kappa` times
stable's share: KAPPA, or as much as stable itself would have if it were slower by the plan's ratio,
which its past tells (`survival`). A share below a tenth of the percentile's own is ignored.

The evidence is the mean of the capitals of the K bounds. A mean of e-processes is one, so K bounds
cost no factor K, and no two claims need to be believed at once.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from deployments.guards.domain import histograms
from deployments.guards.domain.betting import e_process
from deployments.guards.domain.betting.lanes import IntervalTrial
from deployments.guards.domain.histograms import Counts

KAPPA: Final = 2.0
_MOST_KAPPA: Final = 20.0
# The fast lane's gross limit: so many times as slow as allowed, and so much longer.
GROSS_RATIO: Final = 2.0
GROSS_MS: Final = 20.0
GROSS_KAPPA: Final = 5.0
GROSS_SHARE: Final = 0.1
_MOST_GROSS_KAPPA: Final = 100.0
# Of the percentile's own share: what is ignored.
_IGNORED: Final = 0.1
# Bounds above which more of stable's requests lie say little: all of twice the share fits in.
_MOST_SHARE: Final = 0.5
_RARE_BOUNDS: Final = 3
# Requests of stable from which its distribution is known well enough.
LEAST_PAST: Final = 100
_SLOWDOWNS: Final = tuple(1.05**step for step in range(1, 62))


def ignored_share(share: float) -> float:
    return _IGNORED * share


def share_above(past: Counts, bound: float) -> float:
    return histograms.above(past, bound) / max(1, histograms.total(past))


def choose_bounds(past: Counts, share: float) -> tuple[float, ...]:
    """Choose the bounds to bet on: not below most requests, and few above nearly all of them."""
    known = [b for b in histograms.finite_bounds(past) if share_above(past, b) <= _MOST_SHARE]
    common = [b for b in known if share_above(past, b) >= ignored_share(share)]
    return tuple(known[: len(common) + _RARE_BOUNDS])


def survival(past: Counts, at: float, *, share: float) -> float:
    """Return the share of stable's requests above any time, by its histogram.

    Between two bounds it is assumed to fall exponentially, as tails do, unless so few requests lie above the upper
    bound that nothing is known of those between: then as if all were at the lower.
    """
    if at <= 0:
        return 1.0
    bounds = histograms.finite_bounds(past)
    index = bisect_left(bounds, at)
    if index == len(bounds):
        return share_above(past, bounds[-1]) if bounds else 1.0
    high = share_above(past, bounds[index])
    if at == bounds[index] or high < ignored_share(share):
        return high
    low_bound = bounds[index - 1] if index else 0.0
    low = share_above(past, low_bound) if index else 1.0
    part = (at - low_bound) / (bounds[index] - low_bound)
    return math.exp((1 - part) * math.log(low) + part * math.log(high))


def kappa(past: Counts, bound: float, *, ratio: float, slack_ms: float, share: float) -> float:
    """Return how many times stable's share above the bound is allowed."""
    return max(KAPPA, min(_MOST_KAPPA, _growth(past, bound, ratio, slack_ms, share)))


def gross_kappa(
    past: Counts, bound: float, *, ratio: float, slack_ms: float, share: float
) -> float:
    growth = _growth(past, bound, GROSS_RATIO * ratio, max(GROSS_MS, slack_ms), share)
    return max(GROSS_KAPPA, min(_MOST_GROSS_KAPPA, growth))


def _growth(past: Counts, bound: float, ratio: float, slack_ms: float, share: float) -> float:
    """Return how many times the share above the bound grows if stable were that much slower."""
    at = min(bound / ratio, bound - slack_ms)
    least = 0.5 / max(1, histograms.total(past))
    return survival(past, at, share=share) / max(least, share_above(past, bound))


def trial_beside(stable: Counts, candidate: Counts, bound: float, times: float) -> IntervalTrial:
    """Return the trial of the candidate's slow requests among those of both sides. Without any there is no trial."""
    slow, others = histograms.above(candidate, bound), histograms.above(stable, bound)
    if not slow + others:
        return IntervalTrial(0, 0, 0.0)
    chance = e_process.share_of_failures(
        ratio=times, candidate=histograms.total(candidate), stable=histograms.total(stable)
    )
    return IntervalTrial(slow, slow + others, chance)


def trial_alone(candidate: Counts, bound: float, most: float) -> IntervalTrial:
    return IntervalTrial(histograms.above(candidate, bound), histograms.total(candidate), most)


def smallest_visible(
    past: Counts, bounds: Sequence[float], *, ratio: float, slack_ms: float, share: float
) -> float | None:
    """Return how many times slower a candidate must be for any bound to show it. None for more than twenty times.

    Before a rollout `past` is stable's histogram of the last day.
    """
    for times in _SLOWDOWNS:
        for bound in bounds:
            slow = survival(past, bound / times, share=share)
            allowed = kappa(past, bound, ratio=ratio, slack_ms=slack_ms, share=share)
            is_more = slow > allowed * share_above(past, bound)
            if is_more and slow > ignored_share(share):
                return times
    return None
