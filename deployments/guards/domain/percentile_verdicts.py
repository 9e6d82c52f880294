"""Turn the tests of a percentile into one line of the evidence, with the source of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from deployments.guards.domain import histograms, percentile_tests
from deployments.guards.domain.betting import lanes, slow_share
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentiles import QUANTILES, PercentileGuard

Bucket = tuple[float, float] | None
# A histogram that shows a slowdown of so many times the allowed one only cannot tell.
COARSE: Final = 2.0


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
    # None: there is no stable side.
    load: PodLoad | None = None

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
        limit=format_limit(guard, by.tests),
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
    observed = _describe_observed(guard, by)
    if _p(guard, by) <= by.alpha:
        return Verdict.FAILED, f"slower than allowed: {observed}"
    return _without_regression(guard, by, mine, base)


def _without_regression(
    guard: PercentileGuard, by: Judging, mine: Bucket, base: Bucket
) -> tuple[Verdict, str]:
    observed = _describe_observed(guard, by)
    unresolved = _describe_unresolved(guard, by)
    if mine is not None and unresolved:
        return Verdict.NOT_ENOUGH, unresolved
    unequal = by.load.describe_difference() if by.load and guard.max_ratio is not None else ""
    if unequal and mine is not None and by.n >= by.min_requests:
        return Verdict.NOT_COMPARABLE, unequal
    if mine is not None and percentile_tests.is_within(guard, by.tests, alpha=by.alpha):
        return Verdict.PASSED, f"shown to be within the limit; {observed}"
    missing = _describe_missing(guard, by, mine, base)
    if missing:
        return Verdict.NOT_ENOUGH, missing
    return Verdict.PASSED, f"nothing detected; {observed}"


def _describe_unresolved(guard: PercentileGuard, by: Judging) -> str:
    """Why the histogram cannot tell, whatever is counted; empty when it can."""
    if guard.max is not None and by.tests.bound_for(guard.max) is None:
        return "the limit is above the last bound of the histogram, so it cannot be tested"
    if guard.max_ratio is None or not histograms.total(by.tests.past):
        return ""
    bounds = by.tests.bounds_of(guard)
    visible = guard.smallest_visible(by.tests.past, bounds) if bounds else None
    if visible is not None and visible <= COARSE * guard.max_ratio:
        return ""
    if not bounds and histograms.total(by.tests.past) < slow_share.LEAST_PAST:
        return ""
    known = ", ".join(f"{bound:g}" for bound in histograms.finite_bounds(by.tests.past)[:6])
    what = f"only a slowdown of {visible:.1f} times" if visible else "no slowdown"
    return f"cannot tell: the histogram has bounds at {known} ms, which show {what}"


def _describe_missing(guard: PercentileGuard, by: Judging, mine: Bucket, base: Bucket) -> str:
    """Why the guard cannot pass without proof yet; empty when it can."""
    if mine is None:
        return "no requests are in the candidate's histogram at this step yet"
    if by.n < by.min_requests:
        return f"{by.n:,} of {by.min_requests:,} requests in the histogram so far"
    if guard.max_ratio is not None and base is None:
        return "no requests are in stable's histogram at this step yet"
    observed = _describe_observed(guard, by)
    bound = None if guard.max is None else by.tests.bound_for(guard.max)
    if bound is not None and mine[1] > bound:
        return f"above the limit, but not statistically significant; {observed}"
    return f"not yet shown to be within the limit; {observed}" if by.is_strict else ""


def format_limit(guard: PercentileGuard, tests: PercentileTests | None = None) -> str:
    """For example "≤ 40 ms (tested at 50 ms) and ≤ 1.25 times stable"; without tests as the plan
    states it, before any histogram was read.
    """
    parts = []
    if guard.max is not None:
        bound = None if tests is None else tests.bound_for(guard.max)
        at = "" if bound is None or bound == guard.max else f" (tested at {bound:g} ms)"
        parts.append(f"≤ {guard.max:g} ms{at}")
    if guard.max_ratio is not None:
        parts.append(f"≤ {guard.max_ratio:g} times stable")
    return " and ".join(parts)


def _describe_observed(guard: PercentileGuard, by: Judging) -> str:
    """How many requests of each side exceed the bound with the most evidence against it."""
    tests = by.tests
    bound = None if guard.max is None else tests.bound_for(guard.max)
    if guard.max_ratio is not None:
        shared = [b for b in tests.bounds_of(guard) if b in tests.candidate and b in tests.stable]
        bound = max(shared, key=lambda b: _weight(guard, tests, b), default=bound)
    if bound is None or bound not in tests.candidate:
        return f"{by.n:,} requests in the histogram"
    over = histograms.above(tests.candidate, bound)
    text = f"{over:,} of {by.n:,} requests took more than {bound:g} ms"
    if guard.max_ratio is None or bound not in tests.stable or not histograms.total(tests.stable):
        return f"{text}, and {guard.share:.0%} may"
    part = histograms.above(tests.stable, bound) / histograms.total(tests.stable)
    return f"{text}, of stable's {part:.2%}"


def _weight(guard: PercentileGuard, tests: PercentileTests, bound: float) -> float:
    claim = tests.of(guard, f"ratio {bound!r}")
    return max(claim.slow.value, claim.fast.value)


def _p(guard: PercentileGuard, by: Judging) -> float:
    return lanes.p_of(percentile_tests.evidence_of(guard, by.tests))


def _statistic(guard: PercentileGuard, by: Judging) -> str:
    seconds = by.tests.block_seconds
    block = f"blocks of {seconds:g} s" if seconds else "one block for each reading"
    return f"always-valid p {_p(guard, by):.2g}, aborts at {by.alpha:.2g}; {block}"
