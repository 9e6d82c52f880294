"""Turn the tests of a step into verdicts with messages, each with the numbers that led to it.

- fail: a sequential test rejects that the candidate is as allowed. The verdict stays for the step.
- pass: a test shows that it is within the limit; or, unless the plan is strict, the step's minimum
  number of requests was observed, the figure is within the limit and no test rejects.
- not enough data: everything else, above all missing numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain import counters, e_process, sequential_tests
from deployments.guards.domain.counters import NO_FACTS, Facts
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.formatting import format_limit, format_value
from deployments.guards.domain.limits import KINDS, GuardLimit, Metric
from deployments.guards.domain.sequential_tests import Bets, StepTests

_NO_STABLE: Final = "no data from the stable revision to compare with"


@dataclass(frozen=True, slots=True)
class Judging:
    """`alpha` is what one test may spend. `unknown` says why there are no current numbers."""

    tests: StepTests
    alpha: float
    is_strict: bool
    min_requests: int
    stable: Facts = NO_FACTS
    candidate: Facts = NO_FACTS
    unknown: str = ""
    # A shadow's candidate counts copies.
    is_mirrored: bool = False

    @property
    def what(self) -> str:
        return "mirrored requests" if self.is_mirrored else "requests"

    @property
    def n(self) -> int:
        return self.tests.total.candidate.requests


def judge(limits: tuple[GuardLimit, ...], by: Judging) -> tuple[GuardResult, ...]:
    return tuple(_judge(limit, by) for limit in limits)


def alpha_of_one_test(alpha: float, *, tests: int, steps: int) -> float:
    """Bonferroni: the chances of all tests of all steps together stay within alpha."""
    return alpha / max(1, tests * steps)


def _judge(limit: GuardLimit, by: Judging) -> GuardResult:
    total, metric = by.tests.total, limit.metric
    mine = counters.value_of(metric, total.candidate, by.candidate)
    base = counters.value_of(metric, total.stable, by.stable)
    verdict, message = _verdict(limit, by, mine=mine, base=base)
    return GuardResult(
        guard=KINDS[metric].label,
        stable=format_value(metric, base),
        candidate=format_value(metric, mine),
        limit=format_limit(limit, base),
        n=None if by.unknown and not by.n else by.n,
        verdict=verdict,
        message=message,
        source=KINDS[metric].source,
        statistic=_statistic(limit, by),
    )


def _verdict(
    limit: GuardLimit, by: Judging, *, mine: float | None, base: float | None
) -> tuple[Verdict, str]:
    if by.unknown:
        return Verdict.NOT_ENOUGH, by.unknown
    if limit.metric == Metric.GPU_MEMORY:
        return _measured(limit, mine, base)
    if is_worse(limit, by):
        return Verdict.FAILED, _describe_regression(limit, by, mine, base)
    if mine is not None and is_within(limit, by):
        return Verdict.PASSED, f"proven to be within the limit; {_describe_observed(limit, by)}"
    missing = _describe_missing(limit, by, mine, base)
    if missing:
        return Verdict.NOT_ENOUGH, missing
    return Verdict.PASSED, f"no regression detected; {_describe_observed(limit, by)}"


def _describe_missing(
    limit: GuardLimit, by: Judging, mine: float | None, base: float | None
) -> str:
    """Why the guard cannot pass without proof yet; empty when it can."""
    if mine is None:
        return _describe_no_data(limit, by)
    if by.n < by.min_requests:
        return f"{by.n:,} of {by.min_requests:,} {by.what} so far"
    if limit.max_ratio is not None and base is None:
        return _NO_STABLE
    if not _is_allowed(limit, mine, base):
        return (
            f"above the limit, but not statistically significant; {_describe_observed(limit, by)}"
        )
    return (
        f"not yet proven to be within the limit; {_describe_observed(limit, by)}"
        if by.is_strict
        else ""
    )


def is_worse(limit: GuardLimit, by: Judging) -> bool:
    """Whether any of its tests has ever said worse than allowed at this step."""
    return _p_of_max(limit, by) <= by.alpha or _p_of_ratio(limit, by) <= by.alpha


def is_within(limit: GuardLimit, by: Judging) -> bool:
    """Whether the tests of all its limits say so now."""
    needed = 1 / by.alpha
    if limit.max is not None:
        evidence = by.tests.of(sequential_tests.max_test(limit.metric)).within.value
        if evidence < needed:
            return False
    if limit.max_ratio is None:
        return True
    is_low = by.tests.of(sequential_tests.floor_test(limit.metric)).within.value >= needed
    return is_low or by.tests.of(sequential_tests.ratio_test(limit.metric)).within.value >= needed


def _p_of_max(limit: GuardLimit, by: Judging) -> float:
    if limit.max is None:
        return 1.0
    return _p_of(by.tests.of(sequential_tests.max_test(limit.metric)))


def _p_of_ratio(limit: GuardLimit, by: Judging) -> float:
    """Allowed is being below the ratio or below what is ignored, so both must be refuted."""
    if limit.max_ratio is None:
        return 1.0
    p = _p_of(by.tests.of(sequential_tests.ratio_test(limit.metric)))
    if limit.metric != Metric.ERROR_RATE or not limit.ignore_below:
        return p
    return max(p, _p_of(by.tests.of(sequential_tests.floor_test(limit.metric))))


def _p_of(bets: Bets) -> float:
    return min(1.0, 1 / bets.worse.peak)


def _is_allowed(limit: GuardLimit, mine: float, base: float | None) -> bool:
    most = None if base is None else sequential_tests.most_of(limit, base)
    return (limit.max is None or mine <= limit.max) and (most is None or mine <= most)


def _measured(limit: GuardLimit, mine: float | None, base: float | None) -> tuple[Verdict, str]:
    """One reading is enough: allocated memory is a fact, not a sample."""
    if mine is None:
        return Verdict.NOT_ENOUGH, "the GPU memory of the candidate is not measured"
    if limit.max_ratio is not None and base is None:
        return Verdict.NOT_ENOUGH, _NO_STABLE
    if not _is_allowed(limit, mine, base):
        return Verdict.FAILED, "it used more GPU memory than the limit"
    return Verdict.PASSED, "it never used more than the limit"


def _describe_no_data(limit: GuardLimit, by: Judging) -> str:
    if by.n == 0:
        return f"no {by.what} were counted at this step yet"
    if limit.metric == Metric.COST_PER_1000 and by.candidate.usd_per_gpu_hour is None:
        return "the price of its node is not known"
    return "no measurement yet"


def _describe_regression(
    limit: GuardLimit, by: Judging, mine: float | None, base: float | None
) -> str:
    observed = _describe_observed(limit, by)
    if not base or mine is None:
        return f"worse than allowed: {observed}"
    if limit.metric == Metric.ERROR_RATE:
        return f"worse than allowed: {observed}, {mine / base:.1f} times as often as stable"
    return f"worse than allowed: {mine / base - 1:+.0%} against stable; {observed}"


def _describe_observed(limit: GuardLimit, by: Judging) -> str:
    if limit.metric == Metric.ERROR_RATE:
        mine = by.tests.total.candidate
        return f"{mine.failure:,} of {mine.requests:,} {by.what} failed"
    names = (sequential_tests.ratio_test(limit.metric), sequential_tests.max_test(limit.metric))
    bets = max((by.tests.of(name) for name in names), key=lambda test: test.trials)
    if not bets.trials:
        return "no interval had enough requests to compare yet"
    return f"worse than the limit in {bets.hits:,} of {bets.trials:,} intervals"


def _statistic(limit: GuardLimit, by: Judging) -> str:
    if limit.metric == Metric.GPU_MEMORY:
        return ""
    p = min(_p_of_max(limit, by), _p_of_ratio(limit, by))
    text = f"always-valid p {p:.2g}, aborts at {by.alpha:.2g}"
    if limit.metric != Metric.ERROR_RATE or not by.n:
        return text
    failures = by.tests.total.candidate.failure
    bound = e_process.upper_bound(failures=failures, requests=by.n, alpha=0.01)
    return f"{text}; the rate is below {bound:.2%} (99% confidence at any time)"
