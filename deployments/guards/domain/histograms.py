"""Counts of histograms in Prometheus, and what was added to them since a reading.

Bounds are milliseconds; a count at a bound is of requests, or of tokens, that took at most so long, as
in Prometheus. Only whole counts of instances that were there at both readings are added up: one that
is new or began anew has its first reading as its start, so nothing from before a step is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from fleet.clusters.domain.prometheus import PrometheusSample

# By instance, by bound.
InstanceCounts = Mapping[str, Mapping[float, float]]
Counts = Mapping[float, int]


def instance_counts(
    samples: Iterable[PrometheusSample], scale: float
) -> dict[str, dict[float, float]]:
    """Return the counts per instance and bound. Samples that are not buckets are skipped."""
    by_instance: dict[str, dict[float, float]] = {}
    for sample in samples:
        try:
            bound = float(sample.labels["le"]) * scale
        except (KeyError, ValueError):
            continue
        if not math.isnan(bound) and math.isfinite(sample.value):
            by_instance.setdefault(sample.labels.get("instance", ""), {})[bound] = sample.value
    return {name: counts for name, counts in by_instance.items() if math.inf in counts}


def increase(before: InstanceCounts, now: InstanceCounts) -> dict[float, int]:
    """Return the counts added since `before`. Empty if no instance was read twice."""
    increases: list[dict[float, int]] = []
    for instance in before.keys() & now.keys():
        old, new = before[instance], now[instance]
        added = {bound: round(new[bound] - old[bound]) for bound in old.keys() & new.keys()}
        if math.inf in added and min(added.values()) >= 0:
            increases.append(added)
    return add(*increases)


def sum_instances(instances: InstanceCounts) -> dict[float, int]:
    """Return all that the instances have counted since they started."""
    return add(*({b: round(n) for b, n in counts.items()} for counts in instances.values()))


def add(*counts: Counts) -> dict[float, int]:
    """Add counts at the bounds that all of them have; empty counts are ignored."""
    known = [count for count in counts if count]
    if not known:
        return {}
    bounds = set(known[0]).intersection(*known[1:])
    return {bound: sum(count[bound] for count in known) for bound in sorted(bounds)}


def total(counts: Counts) -> int:
    return counts.get(math.inf, 0)


def finite_bounds(counts: Counts) -> list[float]:
    return sorted(bound for bound in counts if math.isfinite(bound))


def above(counts: Counts, bound: float) -> int:
    """Return how many took longer than the bound, which must be one of theirs.

    Buckets that were read a moment apart may contradict each other; the result is then 0.
    """
    return max(0, total(counts) - counts[bound])


def bucket_of(counts: Counts, quantile: float) -> tuple[float, float] | None:
    """Return the bucket that the percentile lies in. None without requests."""
    rank, low = quantile * total(counts), 0.0
    if not total(counts):
        return None
    for bound in sorted(counts):
        if counts[bound] >= rank:
            return low, bound
        low = bound
    return low, math.inf


def format_bucket(bucket: tuple[float, float] | None) -> str:
    if bucket is None:
        return ""
    low, high = bucket
    return f"{low:g}\N{EN DASH}{high:g} ms" if math.isfinite(high) else f"> {low:g} ms"
