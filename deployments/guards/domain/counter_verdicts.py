"""Turn the tests of a step into verdicts with messages, each with the numbers that led to it.

- fail: a sequential test rejects that the candidate is as allowed. The verdict stays for the rollout.
- pass: a test shows that it is within the limit; or, unless the plan is strict, the step's minimum
  number of requests was observed, the figure is within the limit and no test rejects.
- not comparable: times or throughput beside stable's, where pods of one side have more to do.
- not enough data: everything else, above all missing numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain import counters, sequential_tests
from deployments.guards.domain.betting import e_process, lanes, power
from deployments.guards.domain.counters import NO_FACTS, Facts
from deployments.guards.domain.evidence import GuardResult, Verdict
from deployments.guards.domain.formatting import format_limit, format_value
from deployments.guards.domain.limits import COUNTED, KINDS, TIMED, GuardLimit, Metric
from deployments.guards.domain.load import PodLoad
from deployments.guards.domain.step_tests import StepTests

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
    # None: there is no stable side.
    load: PodLoad | None = None

    @property
    def what(self) -> str:
        return "mirrored requests" if self.is_mirrored else "requests"

    @property
    def n(self) -> int:
        return self.tests.total.candidate.requests

    @property
    def timed(self) -> int:
        """Without those whose time was left out, such as those of a pod that warmed up."""
        return self.n - self.tests.total.candidate.untimed


def judge(limits: tuple[GuardLimit, ...], by: Judging) -> tuple[GuardResult, ...]:
    return tuple(_judge(limit, by) for limit in limits)


def alpha_of_one_test(alpha: float, *, tests: int) -> float:
    """Bonferroni: the chances of all tests together stay within alpha. Capital is carried over the
    steps, so a rollout of more steps needs no more.
    """
    return alpha / max(1, tests)


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
    return _without_regression(limit, by, mine, base)


def _without_regression(
    limit: GuardLimit, by: Judging, mine: float | None, base: float | None
) -> tuple[Verdict, str]:
    unequal = _describe_unequal_load(limit, by)
    if unequal and mine is not None and not _describe_few(limit, by):
        return Verdict.NOT_COMPARABLE, unequal
    if mine is not None and sequential_tests.is_within(limit, by.tests, alpha=by.alpha):
        return Verdict.PASSED, f"shown to be within the limit; {_describe_observed(limit, by)}"
    missing = _describe_missing(limit, by, mine, base)
    if missing:
        return Verdict.NOT_ENOUGH, missing
    shown = _describe_power(limit, by)
    return Verdict.PASSED, f"nothing detected{shown}; {_describe_observed(limit, by)}"


def _describe_missing(
    limit: GuardLimit, by: Judging, mine: float | None, base: float | None
) -> str:
    """Why the guard cannot pass without proof yet; empty when it can."""
    if mine is None:
        return _describe_no_data(limit, by)
    if few := _describe_few(limit, by):
        return few
    if limit.max_ratio is not None and base is None:
        return _NO_STABLE
    if not _is_allowed(limit, mine, base):
        return (
            f"above the limit, but not statistically significant; {_describe_observed(limit, by)}"
        )
    return (
        f"not yet shown to be within the limit; {_describe_observed(limit, by)}"
        if by.is_strict
        else ""
    )


def _describe_few(limit: GuardLimit, by: Judging) -> str:
    judged = by.n if limit.metric == Metric.ERROR_RATE else by.timed
    return f"{judged:,} of {by.min_requests:,} {by.what} so far" if judged < by.min_requests else ""


def _describe_unequal_load(limit: GuardLimit, by: Judging) -> str:
    """Why it cannot be compared with stable; empty when it can."""
    is_compared = limit.metric in TIMED and limit.max_ratio is not None
    return by.load.describe_difference() if is_compared and by.load else ""


def is_worse(limit: GuardLimit, by: Judging) -> bool:
    """Whether any of its tests has ever said worse than allowed in this rollout."""
    return _p(limit, by) <= by.alpha


def _p(limit: GuardLimit, by: Judging) -> float:
    return lanes.p_of(sequential_tests.evidence_of(limit, by.tests))


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


def _describe_power(limit: GuardLimit, by: Judging) -> str:
    """The smallest regression that would have been detected by what this step has seen."""
    times = _smallest_regression(limit, by)
    if times is None:
        return ", and it is too early to detect any regression"
    return f"; \N{MULTIPLICATION SIGN}{times:.2g} or worse would have shown by now"


def _smallest_regression(limit: GuardLimit, by: Judging) -> float | None:
    tests = by.tests
    if limit.metric != Metric.ERROR_RATE:
        return power.smallest_slowdown(
            ratio=limit.max_ratio or 1.0,
            block_count=tests.of(sequential_tests.ratio_test(limit.metric)).trials,
            spread=tests.lengths.spread or 0.0,
            level=by.alpha,
        )
    stable, mine = tests.total.stable, tests.total.candidate
    if not tests.seconds or not mine.requests:
        return None
    total = stable.requests + mine.requests
    # Where nothing failed yet, the rate may be as high as one failure in the next request.
    base = max(stable.failure, 1) / max(stable.requests, 1)
    traffic = power.Traffic(total / tests.seconds, mine.requests / total, min(base, 0.5))
    setting = power.Setting(
        sequential_tests.rate_limit(limit),
        by.alpha,
        tests.lengths.errors,
    )
    return power.smallest_regression(traffic, setting, seconds=tests.seconds)


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
    if limit.metric in COUNTED:
        return f"worse than allowed: {observed}, {mine / base:.1f} times as often as stable"
    return f"worse than allowed: {mine / base - 1:+.0%} against stable; {observed}"


def _describe_observed(limit: GuardLimit, by: Judging) -> str:
    if limit.metric in COUNTED:
        mine = by.tests.total.candidate
        how = "failed" if limit.metric == Metric.ERROR_RATE else "never came back"
        return f"{mine.failure:,} of {mine.requests:,} {by.what} {how}"
    names = (sequential_tests.ratio_test(limit.metric), sequential_tests.max_test(limit.metric))
    claim = max((by.tests.of(name) for name in names), key=lambda claim: claim.trials)
    if not claim.trials:
        return "no block is complete yet"
    return f"worse than the limit in {claim.hits:,} of {claim.trials:,} blocks"


def _statistic(limit: GuardLimit, by: Judging) -> str:
    if limit.metric == Metric.GPU_MEMORY:
        return ""
    seconds = sequential_tests.block_seconds(limit, by.tests)
    text = (
        f"always-valid p {_p(limit, by):.2g}, aborts at {by.alpha:.2g}; "
        f"{by.tests.lengths.describe(seconds)}"
    )
    if limit.metric not in COUNTED or not by.n:
        return text
    failures = by.tests.total.candidate.failure
    bound = e_process.upper_bound(failures=failures, requests=by.n, alpha=0.01)
    return f"{text}; the rate is below {bound:.2%} (99% confidence at any time)"
