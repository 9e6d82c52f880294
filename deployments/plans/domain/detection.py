"""The smallest rise in errors that a step of a plan finds, by the traffic that it will have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.guards.domain import counter_verdicts, sequential_tests
from deployments.guards.domain.betting import blocks, power
from deployments.guards.domain.kinds import error_rate
from deployments.plans.domain.rollout_plan import PlanSettings

# A rate of which nothing was seen to fail may still be as high as one more request failing.
_MOST_ERRORS: Final = 0.5


@dataclass(frozen=True, slots=True)
class ExpectedTraffic:
    """Of the whole deployment: requests in a second, and what was counted of them."""

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


def has_error_guard(settings: PlanSettings) -> bool:
    return any(limit.metric == error_rate.KIND.name for limit in settings.guards.limits)


def of_step(
    settings: PlanSettings,
    traffic: ExpectedTraffic,
    *,
    weight: int,
    seconds: int,
    block_seconds: float = blocks.DEFAULT_SECONDS,
) -> Detection | None:
    """None: not even a hundred times as many errors show in so many seconds, or nothing compares them.
    `block_seconds` is that of failures (`blocks.BlockLengths`).
    """
    limit = next(
        (limit for limit in settings.guards.limits if limit.metric == error_rate.KIND.name), None
    )
    if limit is None or not 0 < weight <= 100 or (weight == 100 and not settings.is_shadow):
        return None
    share = weight / 100
    requests = traffic.per_second
    if settings.is_shadow:
        # Its requests are copies, beside all that stable answers.
        requests, share = requests * (1 + share), share / (1 + share)
    elif settings.has_baseline:
        # Compared with as many requests of its baseline; the rest of stable's tell nothing.
        requests, share = requests * 2 * share, 0.5
    expected = power.Traffic(requests, share, traffic.error_ratio)
    setting = power.Setting(
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
