"""Error budgets and burn rates of standing targets.

The alert rule is the multiwindow, multi-burn-rate rule of "The Site Reliability Workbook" (Beyer and others, O'Reilly
2018), chapter 5, "Alerting on SLOs", table 5-8, as far as it notifies at once: the budget burns 14.4 times as fast as
the objective allows over 1 h and over 5 min, or 6 times as fast over 6 h and over 30 min. In a window of 30 days that
is 2% of the budget in an hour, or 5% in 6 hours. The long window says that it matters, the short one that it still
goes on.

Where this differs from the book, which assumes complete counters:

- Telemetry is summed by the minute. A minute that was not read is neither good nor bad; a window of which fewer than
  half of the minutes are known has no burn rate, and neither starts nor ends an alert.
- A rule needs five bad requests in its long window: in a quiet hour two failures would be enough otherwise.
- Without requests nothing burns: the rate of a known window without any is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

LEAST_BAD: Final = 5


class TargetState(StrEnum):
    MET = "met"
    BURNING = "burning"
    EXHAUSTED = "exhausted"
    NOT_KNOWN = "not known"


@dataclass(frozen=True, slots=True)
class BurnRule:
    factor: float
    long_minutes: int
    short_minutes: int


RULES: Final = (BurnRule(14.4, 60, 5), BurnRule(6.0, 360, 30))


@dataclass(frozen=True, slots=True)
class RequestSums:
    """The requests in the known minutes of a window."""

    total: int = 0
    bad: int = 0
    known_minutes: int = 0

    def __add__(self, other: RequestSums) -> RequestSums:
        return RequestSums(
            self.total + other.total,
            self.bad + other.bad,
            self.known_minutes + other.known_minutes,
        )


def add(sums: Iterable[RequestSums]) -> RequestSums:
    result = RequestSums()
    for each in sums:
        result += each
    return result


@dataclass(frozen=True, slots=True)
class RuleResult:
    """The result of a burn-rate rule. `long_rate` and `short_rate` say how many times as fast as allowed; None
    is not known. `fires` is None where that decides it.
    """

    rule: BurnRule
    long_rate: float | None
    short_rate: float | None
    fires: bool | None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The evaluation of a target. `budget_left` is 1 for an untouched budget and negative for an exceeded one;
    None: no requests are known.

    `known_share` is the part of the window's minutes that was read.
    """

    state: TargetState
    sums: RequestSums
    allowed_bad: float
    budget_left: float | None
    known_share: float
    rules: Sequence[RuleResult]

    @property
    def is_burning(self) -> bool | None:
        """Whether the budget burns too fast. None means not known, which neither starts nor ends an alert."""
        fires = [result.fires for result in self.rules]
        if True in fires:
            return True
        return None if None in fires else False


def burn_rate(sums: RequestSums, *, minutes: int, budget: float) -> float | None:
    if 2 * sums.known_minutes < minutes:
        return None
    # Rounded, so that a rate of exactly a factor reaches it.
    return round(sums.bad / sums.total / budget, 9) if sums.total else 0.0


def judge(rule: BurnRule, long: RequestSums, short: RequestSums, *, budget: float) -> RuleResult:
    long_rate = burn_rate(long, minutes=rule.long_minutes, budget=budget)
    short_rate = burn_rate(short, minutes=rule.short_minutes, budget=budget)
    is_low = [rate is not None and rate < rule.factor for rate in (long_rate, short_rate)]
    fires: bool | None
    if any(is_low) or (long_rate is not None and long.bad < LEAST_BAD):
        fires = False
    else:
        fires = None if long_rate is None or short_rate is None else True
    return RuleResult(rule, long_rate, short_rate, fires)


def evaluate(
    *,
    objective_percent: float,
    window: RequestSums,
    window_minutes: int,
    rules: Sequence[RuleResult],
) -> Evaluation:
    """Evaluate a target. `window` are the sums of its whole window."""
    allowed = window.total * budget_of(objective_percent)
    left = 1 - window.bad / allowed if window.total else None
    known = min(1.0, window.known_minutes / window_minutes) if window_minutes else 0.0
    return Evaluation(
        state=_state(left, rules),
        sums=window,
        allowed_bad=allowed,
        budget_left=left,
        known_share=known,
        rules=rules,
    )


def budget_of(objective_percent: float) -> float:
    """Return the share of requests that may be bad."""
    return (100 - objective_percent) / 100


def _state(left: float | None, rules: Sequence[RuleResult]) -> TargetState:
    if any(result.fires for result in rules):
        return TargetState.BURNING
    if left is None:
        return TargetState.NOT_KNOWN
    if left <= 0:
        return TargetState.EXHAUSTED
    if any(result.fires is None for result in rules):
        return TargetState.NOT_KNOWN
    return TargetState.MET
