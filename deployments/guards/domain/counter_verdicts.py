"""The verdicts of the tests on counters at a step, with messages and the numbers that led to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self

from deployments.guards.domain import judging, sequential_tests
from deployments.guards.domain.betting import e_process, lanes, power
from deployments.guards.domain.counters import NO_FACTS, SideFacts
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.families.counters import MeasuredFigure, Rate
from deployments.guards.domain.formatting import format_limit
from deployments.guards.domain.judging import VerdictInputs
from deployments.guards.domain.limits import GuardLimit
from deployments.guards.domain.step_tests import StepTests
from portal.core.definitions.figures import format_figure

_NO_STABLE: Final = "no data from the stable revision to compare with"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterInputs(VerdictInputs):
    tests: StepTests
    stable: SideFacts = NO_FACTS
    candidate: SideFacts = NO_FACTS
    # A shadow's candidate counts copies.
    is_mirrored: bool = False

    @property
    def what(self) -> str:
        return "mirrored requests" if self.is_mirrored else "requests"

    @property
    def n(self) -> int:
        return self.tests.total.candidate.requests

    @property
    def timed(self) -> int:
        """The number of requests whose time counts: not those of a pod that warmed up, for example."""
        return self.n - self.tests.total.candidate.untimed


def judge(limits: tuple[GuardLimit, ...], by: CounterInputs) -> tuple[GuardResult, ...]:
    return tuple(_Findings.of(limit, by).result() for limit in limits)


def is_worse(limit: GuardLimit, by: CounterInputs) -> bool:
    """Whether any of its tests has ever said worse than allowed in this rollout."""
    return _Findings.of(limit, by).is_worse


def alpha_of_one_test(alpha: float, *, tests: int) -> float:
    """Return alpha by Bonferroni, so that the chances of all tests together stay within the plan's alpha.

    Capital is carried over the steps, so a rollout of more steps needs no more.
    """
    return alpha / max(1, tests)


@dataclass(frozen=True, slots=True)
class _Findings:
    """The findings of a guard on counters. `mine` and `base` are the figures of the candidate and of stable at this
    step.
    """

    limit: GuardLimit
    by: CounterInputs
    mine: float | None
    base: float | None

    @classmethod
    def of(cls, limit: GuardLimit, by: CounterInputs) -> Self:
        total, value = by.tests.total, limit.kind.value
        return cls(
            limit,
            by,
            mine=value(total.candidate, by.candidate),
            base=value(total.stable, by.stable),
        )

    def result(self) -> GuardResult:
        limit, by, kind = self.limit, self.by, self.limit.kind
        test = kind.test
        verdict, message = (
            self._measured(test) if isinstance(test, MeasuredFigure) else judging.verdict_of(self)
        )
        if unknown := self._describe_no_tokens():
            verdict, message = Verdict.NOT_KNOWN, unknown
        return GuardResult(
            guard=kind.label,
            stable=kind.format(self.base),
            candidate=kind.format(self.mine),
            limit=format_limit(limit, self.base),
            n=None if by.unknown and not by.n else by.n,
            verdict=verdict,
            message=message,
            source=kind.source,
            statistic="" if isinstance(test, MeasuredFigure) else self._statistic(verdict),
        )

    def _describe_no_tokens(self) -> str:
        """Return why the servers will never count what this guard is made of. Empty if they do."""
        kind, total = self.limit.kind, self.by.tests.total
        if not kind.is_of_tokens or self.by.unknown or not self.by.n:
            return ""
        if not total.candidate.has_tokens:
            return "its server counts no tokens: this guard is one of language models"
        facts = (self.by.stable, self.by.candidate)
        is_missing = kind.fact and None in (getattr(each, kind.fact) for each in facts)
        return kind.missing_fact if is_missing else ""

    def _measured(self, test: MeasuredFigure) -> tuple[Verdict, str]:
        """Judge a measured figure. One reading is enough, because it is a fact and not a sample."""
        missing = self.by.unknown or (test.missing if self.mine is None else "")
        if missing := missing or self.describe_no_stable():
            return Verdict.NOT_ENOUGH, missing
        return (Verdict.PASSED, test.within) if self.is_within else (Verdict.FAILED, test.above)

    @property
    def is_worse(self) -> bool:
        return self._p <= self.by.alpha

    @property
    def is_shown_within(self) -> bool:
        return sequential_tests.is_within(self.limit, self.by.tests, alpha=self.by.alpha)

    @property
    def is_within(self) -> bool:
        if self.mine is None:
            return False
        highest = self.limit.max
        beside = None if self.base is None else sequential_tests.most_of(self.limit, self.base)
        return all(most is None or self.mine <= most for most in (highest, beside))

    @property
    def _p(self) -> float:
        return lanes.p_of(sequential_tests.evidence_of(self.limit, self.by.tests))

    def describe_observed(self) -> str:
        test = self.limit.kind.test
        if isinstance(test, Rate):
            mine = test.count(self.by.tests.total.candidate)
            return f"{mine.events:,} of {mine.requests:,} {self.by.what} {test.event}"
        names = (sequential_tests.ratio_test, sequential_tests.max_test)
        claims = [self.by.tests.get_claim(name(self.limit.metric)) for name in names]
        claim = max(claims, key=lambda claim: claim.trials)
        if not claim.trials:
            return "no block is complete yet"
        return f"worse than the limit in {claim.hits:,} of {claim.trials:,} blocks"

    def describe_regression(self) -> str:
        observed, mine, base = self.describe_observed(), self.mine, self.base
        if not base or mine is None:
            return f"worse than allowed: {observed}"
        if self.limit.kind.is_rate:
            return f"worse than allowed: {observed}, {mine / base:.1f} times as often as stable"
        return f"worse than allowed: {mine / base - 1:+.0%} against stable; {observed}"

    def describe_no_data(self) -> str:
        if self.mine is not None:
            return ""
        kind = self.limit.kind
        if self.by.n == 0:
            return f"no {self.by.what} were counted at this step yet"
        if kind.missing_fact and getattr(self.by.candidate, kind.fact) is None:
            return kind.missing_fact
        return "no measurement yet"

    def describe_few(self) -> str:
        by = self.by
        judged = by.n if self.limit.kind.is_rate else by.timed
        return (
            f"{judged:,} of {by.min_requests:,} {by.what} so far"
            if judged < by.min_requests
            else ""
        )

    def describe_no_stable(self) -> str:
        return _NO_STABLE if self.limit.max_ratio is not None and self.base is None else ""

    def describe_unresolved(self) -> str:
        """Return nothing, because counters have no bounds."""
        return ""

    def describe_unequal_load(self) -> str:
        is_compared = self.limit.kind.is_timed and self.limit.max_ratio is not None
        return self.by.load.describe_difference() if is_compared and self.by.load else ""

    @property
    def is_too_early(self) -> bool:
        return self._smallest_regression() is None

    def _describe_power(self) -> str:
        """Describe the smallest regression that this step would have detected by now. Empty if there is none."""
        times = self._smallest_regression()
        return (
            f"; detects \N{MULTIPLICATION SIGN}{format_figure(times, 2)} or worse by now"
            if times is not None
            else ""
        )

    def _smallest_regression(self) -> float | None:
        tests, alpha, test = self.by.tests, self.by.alpha, self.limit.kind.test
        if not isinstance(test, Rate):
            return power.smallest_slowdown(
                ratio=self.limit.max_ratio or 1.0,
                block_count=tests.get_claim(sequential_tests.ratio_test(self.limit.metric)).trials,
                spread=tests.lengths.spread or 0.0,
                level=alpha,
            )
        stable, mine = test.count(tests.total.stable), test.count(tests.total.candidate)
        if not tests.seconds or not mine.requests:
            return None
        total = stable.requests + mine.requests
        # Where nothing failed yet, the rate may be as high as one failure in the next request.
        base = max(stable.events, 1) / max(stable.requests, 1)
        traffic = power.PowerTraffic(total / tests.seconds, mine.requests / total, min(base, 0.5))
        setting = power.PowerSetting(
            sequential_tests.rate_limit(self.limit), alpha, tests.lengths.errors
        )
        return power.smallest_regression(traffic, setting, seconds=tests.seconds)

    def _statistic(self, verdict: Verdict) -> str:
        """Return the line beside the message for people who know statistics."""
        limit, by = self.limit, self.by
        seconds = sequential_tests.block_seconds(limit, by.tests)
        text = (
            f"always-valid p {self._p:.2g}, aborts at {by.alpha:.2g}; "
            f"{by.tests.lengths.describe(seconds)}"
        )
        if verdict is Verdict.PASSED:
            text += self._describe_power()
        if not isinstance(limit.kind.test, Rate) or not by.n:
            return text
        mine = limit.kind.test.count(by.tests.total.candidate)
        bound = e_process.upper_bound(failures=mine.events, requests=mine.requests, alpha=0.01)
        return f"{text}; the rate is below {bound:.2%} (99% confidence at any time)"
