"""Cumulative histograms as a server exports them: increases between readings, sums and quantiles."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

# Upper bound -> observations up to it; the last bound is infinite.
Histogram = Mapping[float, int]


def increase(before: Histogram, after: Histogram) -> Histogram:
    """Return the increase of a histogram. A restart of the server, or a histogram with other bounds, counts from
    zero.
    """
    if before.keys() != after.keys() or any(after[bound] < before[bound] for bound in after):
        return after
    return {bound: count - before[bound] for bound, count in after.items()}


def total(histograms: Iterable[Histogram]) -> Histogram:
    """Sum the histograms that have the bounds of the first one. Those with other bounds are left out: the sum would
    not be a histogram.
    """
    result: Counter[float] = Counter()
    bounds: frozenset[float] | None = None
    for histogram in histograms:
        bounds = frozenset(histogram) if bounds is None else bounds
        if frozenset(histogram) == bounds:
            result.update(histogram)
    return dict(sorted(result.items()))


def quantile(histogram: Histogram, part: float) -> float | None:
    """Return the quantile, interpolated inside its bucket as PromQL does; for the last bucket, its lower bound.
    None without observations.
    """
    steps = [(0.0, 0), *sorted(histogram.items())]
    rank = part * steps[-1][1]
    if not steps[-1][1]:
        return None
    for (lower, below), (upper, count) in pairwise(steps):
        if count >= rank and count > below:
            is_open = math.isinf(upper)
            return lower if is_open else lower + (upper - lower) * (rank - below) / (count - below)
    return None


def to_json(histogram: Histogram | None) -> list[list[float | None]] | None:
    """Return the histogram as JSON. The infinite bound is null."""
    if not histogram:
        return None
    return [[None if math.isinf(bound) else bound, n] for bound, n in histogram.items()]


def from_json(rows: Any) -> Histogram:
    return {math.inf if bound is None else float(bound): int(n) for bound, n in rows or ()}
