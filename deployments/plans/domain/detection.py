"""The regressions that a plan detects, estimated before it is requested: the smallest rise in errors of each
step by the traffic that it will have, and how long a rise in latency takes to show by the blocks that
stable's last hour asks for.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from deployments.guards.domain import counter_verdicts, sequential_tests
from deployments.guards.domain.betting import blocks, e_process, power
from deployments.guards.domain.betting.blocks import BlockLengths
from deployments.guards.domain.betting.lanes import IntervalTrial
from deployments.guards.domain.betting.slots import SLOT_SECONDS
from deployments.guards.domain.kinds import error_rate, latency_mean
from deployments.plans.domain.rollout_plan import PlanSettings

# A rate of which nothing was seen to fail may still be as high as one more request failing.
_MOST_ERRORS: Final = 0.5
# A block in which the candidate is slower: its mean, or so many of its requests that no block pays more.
_SLOWER_MEAN: Final = IntervalTrial(1, 1, e_process.SIGN_CHANCE)
_SLOWER_PERCENTILE: Final = IntervalTrial(1000, 1000, e_process.SIGN_CHANCE)


@dataclass(frozen=True, slots=True)
class ExpectedTraffic:
    """The traffic of the whole deployment: requests per second, and the requests and failures that were counted."""

    per_second: float
    requests: int
    failures: int

    @property
    def error_ratio(self) -> float:
        return min(max(self.failures, 1) / max(self.requests, 1), _MOST_ERRORS)


@dataclass(frozen=True, slots=True)
class Detection:
    """A candidate that fails `times` as often as stable is found within `seconds` in 9 of 10 rollouts."""

    times: float
    seconds: int


@dataclass(frozen=True, slots=True)
class LatencyDetection:
    """A candidate that is slower in each block of `block_seconds` is found after `seconds` at the earliest,
    unless it is so much slower that the fast lane finds it. `is_for_requests`: a block is longer than stable's
    past asks for, because it needs some requests of both sides.
    """

    block_seconds: float
    blocks: int
    is_from_history: bool
    is_for_requests: bool = False

    @property
    def seconds(self) -> int:
        return round(self.block_seconds * self.blocks)


def estimate_latency(
    settings: PlanSettings,
    lengths: BlockLengths,
    *,
    weights: Iterable[int] = (),
    per_second: float | None = None,
) -> LatencyDetection | None:
    """Estimate the detection of slower responses by the latency guard that takes longest, at the step where a
    block is shortest. `per_second` None means the traffic is not known. None without a latency guard that
    compares with stable.
    """
    guards = settings.guards
    is_mean = any(limit.kind.is_timed and limit.max_ratio for limit in guards.limits)
    if not is_mean and not any(guard.max_ratio for guard in guards.percentiles):
        return None
    level = counter_verdicts.alpha_of_one_test(settings.analysis.alpha, tests=guards.tests)
    sign = _SLOWER_MEAN if is_mean else _SLOWER_PERCENTILE
    count = power.fewest_blocks(sign, level, settings.analysis.payoff)
    seconds = (
        max(lengths.means, SLOT_SECONDS)
        if is_mean
        else max(blocks.lengthen_for_histogram(lengths.means), blocks.READING_SECONDS)
    )
    least = _seconds_of_requests(settings, weights, per_second) if is_mean and per_second else 0.0
    return LatencyDetection(
        max(seconds, least), count, lengths.is_from_history, is_for_requests=least > seconds
    )


def _seconds_of_requests(
    settings: PlanSettings, weights: Iterable[int], per_second: float
) -> float:
    """Return the seconds until both sides have the requests without which means are not compared, at the step
    that has them first. 0 without such a step.
    """
    times = []
    for weight in weights:
        if _has_stable_side(settings, weight):
            requests, share = _compared(settings, per_second, weight)
            of_candidate = e_process.SIGN_REQUESTS_OF_CANDIDATE / share
            of_stable = e_process.SIGN_REQUESTS / (1 - share)
            times.append(max(of_candidate, of_stable) / requests)
    return min(times, default=0.0)


def _has_stable_side(settings: PlanSettings, weight: int) -> bool:
    return 0 < weight <= 100 and (weight < 100 or settings.is_shadow)


def _compared(settings: PlanSettings, per_second: float, weight: int) -> tuple[float, float]:
    """Return the requests of both sides in a second that are compared, and the candidate's share of them."""
    share = weight / 100
    if settings.is_shadow:
        # Its requests are copies, beside all that stable answers.
        return per_second * (1 + share), share / (1 + share)
    if settings.has_baseline:
        # Compared with as many requests of its baseline; the rest of stable's tell nothing.
        return per_second * 2 * share, 0.5
    return per_second, share


@dataclass(frozen=True, slots=True)
class ExpectedStep:
    """A step as it is expected to be: its traffic weight, and how long it takes at today's traffic."""

    weight: int
    seconds: float


def estimate_slowdown(
    settings: PlanSettings,
    lengths: BlockLengths,
    *,
    steps: Iterable[ExpectedStep],
    per_second: float | None = None,
    mean_ms: float | None = None,
) -> float | None:
    """Estimate the smallest multiple of stable's mean latency that the steps detect together. None without a guard that
    compares it, if the last hour does not show how much it varies, or if the steps have too few blocks.

    `mean_ms` is stable's mean: what is longer by less than the guard ignores is not found.
    """
    limit = next(
        (each for each in settings.guards.limits if each.metric == latency_mean.KIND.name), None
    )
    if limit is None or not limit.max_ratio or lengths.spread is None:
        return None
    block_count = 0
    for step in steps:
        if _has_stable_side(settings, step.weight):
            waits = _seconds_of_requests(settings, [step.weight], per_second) if per_second else 0.0
            block_count += int(step.seconds // max(lengths.means, SLOT_SECONDS, waits))
    found = power.smallest_slowdown(
        ratio=limit.max_ratio,
        block_count=block_count,
        spread=lengths.spread,
        level=counter_verdicts.alpha_of_one_test(
            settings.analysis.alpha, tests=settings.guards.tests
        ),
    )
    ignored = 1 + (limit.ignore_below or 0.0) / mean_ms if mean_ms else 1.0
    return None if found is None else max(found, ignored)


def has_error_guard(settings: PlanSettings) -> bool:
    return any(limit.metric == error_rate.KIND.name for limit in settings.guards.limits)


def estimate_step(
    settings: PlanSettings,
    traffic: ExpectedTraffic,
    *,
    weight: int,
    seconds: int,
    block_seconds: float = blocks.DEFAULT_SECONDS,
) -> Detection | None:
    """Estimate the rise in errors that a step of `seconds` detects. `block_seconds` is that of failures
    (`blocks.BlockLengths`). None if not even a hundred times as many errors show in this time, or if no
    guard compares them.
    """
    limit = next(
        (limit for limit in settings.guards.limits if limit.metric == error_rate.KIND.name), None
    )
    if limit is None or not _has_stable_side(settings, weight):
        return None
    requests, share = _compared(settings, traffic.per_second, weight)
    expected = power.PowerTraffic(requests, share, traffic.error_ratio)
    setting = power.PowerSetting(
        sequential_tests.rate_limit(limit),
        counter_verdicts.alpha_of_one_test(settings.analysis.alpha, tests=settings.guards.tests),
        block_seconds,
        settings.analysis.payoff,
    )
    times = power.smallest_regression(expected, setting, seconds=seconds)
    if times is None:
        return None
    found = power.seconds_to_find(expected, setting, times=times)
    return None if found is None else Detection(times, round(found))
