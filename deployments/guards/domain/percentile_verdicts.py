"""Turn the tests of a percentile into one line of the evidence, with the source of the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Self

from deployments.guards.domain import histograms, judging, percentile_tests
from deployments.guards.domain.betting import lanes, slow_share
from deployments.guards.domain.evidence import GuardResult
from deployments.guards.domain.judging import VerdictInputs
from deployments.guards.domain.percentile_tests import PercentileTests
from deployments.guards.domain.percentiles import PercentileGuard

Bucket = tuple[float, float] | None
# A histogram that shows a slowdown of so many times the allowed one only cannot tell.
COARSE: Final = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PercentileInputs(VerdictInputs):
    tests: PercentileTests
    source: str = ""
    query: str = ""
    at: datetime | None = None

    @property
    def n(self) -> int:
        return histograms.total(self.tests.candidate)


def judge(guard: PercentileGuard, by: PercentileInputs) -> GuardResult:
    return _Findings.of(guard, by).result()


def format_limit(guard: PercentileGuard, tests: PercentileTests | None = None) -> str:
    """Format a limit: "≤ 40 ms (tested at 50 ms) and ≤ 1.25 times stable".

    Without tests it is formatted as the plan states it, before any histogram was read.
    """
    parts = []
    if guard.max is not None:
        bound = None if tests is None else tests.bound_for(guard.max)
        at = "" if bound is None or bound == guard.max else f" (tested at {bound:g} ms)"
        parts.append(f"≤ {guard.max:g} ms{at}")
    if guard.max_ratio is not None:
        parts.append(f"≤ {guard.max_ratio:g} times stable")
    return " and ".join(parts)


@dataclass(frozen=True, slots=True)
class _Findings:
    """The findings of a percentile guard. `mine` and `base` are the buckets of the percentile, of the candidate and
    of stable.
    """

    guard: PercentileGuard
    by: PercentileInputs
    mine: Bucket
    base: Bucket

    @classmethod
    def of(cls, guard: PercentileGuard, by: PercentileInputs) -> Self:
        tests, quantile = by.tests, guard.kind.quantile
        return cls(
            guard,
            by,
            mine=histograms.bucket_of(tests.candidate, quantile),
            base=histograms.bucket_of(tests.stable, quantile),
        )

    def result(self) -> GuardResult:
        guard, by = self.guard, self.by
        verdict, message = judging.verdict_of(self)
        seconds = by.tests.block_seconds
        block = f"blocks of {seconds:g} s" if seconds else "one block for each reading"
        return GuardResult(
            guard=guard.label,
            stable=histograms.format_bucket(self.base),
            candidate=histograms.format_bucket(self.mine),
            limit=format_limit(guard, by.tests),
            n=None if by.unknown and not by.n else by.n,
            verdict=verdict,
            message=message,
            source=by.source or guard.source,
            statistic=f"always-valid p {self._p:.2g}, aborts at {by.alpha:.2g}; {block}",
            query=by.query,
            measured_at=f"{by.at:%H:%M:%S} UTC" if by.at else "",
        )

    @property
    def _noun(self) -> str:
        return self.guard.kind.measure.noun

    @property
    def is_worse(self) -> bool:
        return self._p <= self.by.alpha

    @property
    def is_shown_within(self) -> bool:
        return percentile_tests.is_within(self.guard, self.by.tests, alpha=self.by.alpha)

    @property
    def is_within(self) -> bool:
        return self._bound is None or (self.mine is not None and self.mine[1] <= self._bound)

    @property
    def _p(self) -> float:
        return lanes.p_of(percentile_tests.evidence_of(self.guard, self.by.tests))

    @property
    def _bound(self) -> float | None:
        """The bound at which the absolute limit is tested. None without one."""
        return None if self.guard.max is None else self.by.tests.bound_for(self.guard.max)

    def describe_observed(self) -> str:
        """Describe how many requests of each side exceed the bound with the most evidence against it."""
        guard, tests, n = self.guard, self.by.tests, self.by.n
        bound = self._bound
        if guard.max_ratio is not None:
            shared = [
                b for b in tests.bounds_of(guard) if b in tests.candidate and b in tests.stable
            ]
            bound = max(shared, key=self._evidence_at, default=bound)
        if bound is None or bound not in tests.candidate:
            return f"{n:,} {self._noun} in the histogram"
        over = histograms.above(tests.candidate, bound)
        text = f"{over:,} of {n:,} {self._noun} took more than {bound:g} ms"
        of_stable = histograms.total(tests.stable)
        if guard.max_ratio is None or bound not in tests.stable or not of_stable:
            return f"{text}, and {guard.share:.0%} may"
        part = histograms.above(tests.stable, bound) / of_stable
        return f"{text}, of stable's {part:.2%}"

    def _evidence_at(self, bound: float) -> float:
        claim = self.by.tests.get_claim(self.guard, f"ratio {bound!r}")
        return max(claim.slow.value, claim.fast.value)

    def describe_regression(self) -> str:
        return f"slower than allowed: {self.describe_observed()}"

    @property
    def is_too_early(self) -> bool:
        """Return False, because power is not estimated for histograms."""
        return False

    def describe_no_data(self) -> str:
        if self.mine is not None:
            return ""
        return f"no {self._noun} are in the candidate's histogram at this step yet"

    def describe_few(self) -> str:
        n, least = self.by.n, self.by.min_requests
        return f"{n:,} of {least:,} {self._noun} in the histogram so far" if n < least else ""

    def describe_no_stable(self) -> str:
        if self.guard.max_ratio is None or self.base is not None:
            return ""
        return f"no {self._noun} are in stable's histogram at this step yet"

    def describe_unresolved(self) -> str:
        """Return why the bounds of the histogram cannot tell. Empty if they can."""
        guard, tests = self.guard, self.by.tests
        if guard.max is not None and self._bound is None:
            return "the limit is above the last bound of the histogram, so it cannot be tested"
        if guard.max_ratio is None or not histograms.total(tests.past):
            return ""
        bounds = tests.bounds_of(guard)
        visible = guard.smallest_visible(tests.past, bounds) if bounds else None
        if visible is not None and visible <= COARSE * guard.max_ratio:
            return ""
        if not bounds and histograms.total(tests.past) < slow_share.LEAST_PAST:
            return ""
        known = ", ".join(f"{bound:g}" for bound in histograms.finite_bounds(tests.past)[:6])
        what = f"only a slowdown of {visible:.1f} times" if visible else "no slowdown"
        return f"cannot tell: the histogram has bounds at {known} ms, which show {what}"

    def describe_unequal_load(self) -> str:
        is_compared = self.guard.max_ratio is not None
        return self.by.load.describe_difference() if is_compared and self.by.load else ""
