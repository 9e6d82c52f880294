"""Turn the tests of a percentile into one line of the evidence, with the source of the numbers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

from deployments.guards.domain import histograms, percentiles
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.percentiles import QUANTILES, PercentileGuard, PercentileTests

Bucket = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Judging:
    """`alpha` is what one test may spend. `unknown` says why there are no current numbers."""

    tests: PercentileTests
    alpha: float
    is_strict: bool
    min_requests: int
    source: str = ""
    query: str = ""
    at: datetime | None = None
    unknown: str = ""

    @property
    def n(self) -> int:
        return histograms.total(self.tests.candidate)


def judge(guard: PercentileGuard, by: Judging) -> GuardResult:
    mine = histograms.bucket_of(by.tests.candidate, QUANTILES[guard.metric])
    base = histograms.bucket_of(by.tests.stable, QUANTILES[guard.metric])
    verdict, message = _verdict(guard, by, mine=mine, base=base)
    return GuardResult(
        guard=guard.label,
        stable=histograms.format_bucket(base),
        candidate=histograms.format_bucket(mine),
        limit=_format_limit(guard, by.tests, base),
        n=None if by.unknown and not by.n else by.n,
        verdict=verdict,
        message=message,
        source=by.source or "histograms in the cluster's Prometheus",
        statistic=_statistic(guard, by),
        query=by.query,
        measured_at=f"{by.at:%H:%M:%S} UTC" if by.at else "",
    )


def _verdict(
    guard: PercentileGuard, by: Judging, *, mine: Bucket, base: Bucket
) -> tuple[Verdict, str]:
    if by.unknown:
        return Verdict.NOT_ENOUGH, by.unknown
    if _p(guard, by) <= by.alpha:
        return Verdict.FAILED, f"slower than allowed: {_describe_observed(guard, by, base)}"
    if mine is not None and percentiles.is_shown_within(guard, by.tests, by.alpha):
        return (
            Verdict.PASSED,
            f"proven to be within the limit; {_describe_observed(guard, by, base)}",
        )
    missing = _describe_missing(guard, by, mine, base)
    if missing:
        return Verdict.NOT_ENOUGH, missing
    return Verdict.PASSED, f"no slowdown detected; {_describe_observed(guard, by, base)}"


def _describe_missing(guard: PercentileGuard, by: Judging, mine: Bucket, base: Bucket) -> str:
    """Why the guard cannot pass without proof yet; empty when it can."""
    if mine is None:
        return "no requests are in the candidate's histogram at this step yet"
    if by.n < by.min_requests:
        return f"{by.n:,} of {by.min_requests:,} requests in the histogram so far"
    if guard.max_ratio is not None and base is None:
        return "no requests are in stable's histogram at this step yet"
    limits = _limits(guard, by.tests, base)
    if None in limits:
        return "the limit is above the last bound of the histogram, so it cannot be tested"
    observed = _describe_observed(guard, by, base)
    if any(limit is not None and mine[1] > limit for limit in limits):
        return f"above the limit, but not statistically significant; {observed}"
    return f"not yet proven to be within the limit; {observed}" if by.is_strict else ""


def _limits(guard: PercentileGuard, tests: PercentileTests, base: Bucket) -> list[float | None]:
    """The bounds at which it is tested; None for one that the histogram does not have."""
    limits = [] if guard.max is None else [tests.bound_for(guard.max)]
    if guard.max_ratio is not None and base is not None:
        high = base[1]
        limit = tests.bound_for(guard.allowed_beside(high)) if math.isfinite(high) else None
        limits.append(limit)
    return limits


def format_limit(guard: PercentileGuard) -> str:
    """The limit as the plan states it, before any histogram was read."""
    return _format_limit(guard, PercentileTests(), None)


def _format_limit(guard: PercentileGuard, tests: PercentileTests, base: Bucket) -> str:
    """For example "≤ 40 ms (tested at 50 ms) and ≤ 1.25 times stable (tested at 100 ms)"."""
    parts = []
    if guard.max is not None:
        parts.append(f"≤ {guard.max:g} ms{_tested_at(tests.bound_for(guard.max), guard.max)}")
    if guard.max_ratio is not None:
        text = f"≤ {guard.max_ratio:g} times stable"
        if base is not None and math.isfinite(base[1]):
            text += _tested_at(tests.bound_for(guard.allowed_beside(base[1])), None)
        parts.append(text)
    return " and ".join(parts)


def _tested_at(bound: float | None, limit: float | None) -> str:
    return "" if bound is None or bound == limit else f" (tested at {bound:g} ms)"


def _describe_observed(guard: PercentileGuard, by: Judging, base: Bucket) -> str:
    """How many requests exceed the limit that is exceeded most often."""
    share = f"{guard.share:.0%}"
    known = [limit for limit in _limits(guard, by.tests, base) if limit is not None]
    bounds = [limit for limit in known if limit in by.tests.candidate]
    if not bounds:
        return f"{by.n:,} requests in the histogram"
    bound = min(bounds)
    over = histograms.above(by.tests.candidate, bound)
    return f"{over:,} of {by.n:,} requests took more than {bound:g} ms, and {share} may"


def _p(guard: PercentileGuard, by: Judging) -> float:
    return min(percentiles.p_of_max(guard, by.tests), percentiles.p_of_ratio(guard, by.tests))


def _statistic(guard: PercentileGuard, by: Judging) -> str:
    return f"always-valid p {_p(guard, by):.2g}, aborts at {by.alpha:.2g}"
