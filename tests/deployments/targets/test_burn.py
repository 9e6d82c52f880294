"""Error budgets and the two-window rule: pure arithmetic."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.targets.domain import burn
from deployments.targets.domain.burn import (
    RULES,
    BurnRule,
    Evaluation,
    RequestSums,
    RuleResult,
    TargetState,
)

FAST, SLOW = RULES
# Of an objective of 99.9%.
BUDGET = 0.001


def judge(long: RequestSums, short: RequestSums, rule: BurnRule = FAST) -> RuleResult:
    return burn.judge(rule, long, short, budget=BUDGET)


def evaluate(window: RequestSums, *rules: RuleResult, minutes: int = 43_200) -> Evaluation:
    return burn.evaluate(
        objective_percent=99.9, window=window, window_minutes=minutes, rules=list(rules)
    )


def test_the_rules_are_those_of_the_book() -> None:
    assert [(r.factor, r.long_minutes, r.short_minutes) for r in RULES] == [
        (14.4, 60, 5),
        (6.0, 360, 30),
    ]
    # Of 30 days: 2% of the budget in an hour, 5% in six.
    assert [round(r.factor * r.long_minutes / (30 * 1440), 3) for r in RULES] == [0.02, 0.05]


def test_a_rule_fires_exactly_at_its_factor() -> None:
    long = RequestSums(total=10_000, bad=144, known_minutes=60)
    short = RequestSums(total=10_000, bad=144, known_minutes=5)

    at, below = judge(long, short), judge(long, RequestSums(10_000, 143, 5))

    assert (at.long_rate, at.short_rate, at.fires) == (
        pytest.approx(14.4),
        pytest.approx(14.4),
        True,
    )
    assert below.fires is False


def test_it_needs_both_windows() -> None:
    high, low = RequestSums(10_000, 500, 60), RequestSums(10_000, 10, 60)

    assert judge(high, RequestSums(1_000, 0, 5)).fires is False
    assert judge(low, RequestSums(1_000, 500, 5)).fires is False


def test_a_window_of_which_less_than_half_was_read_is_not_known() -> None:
    high = RequestSums(10_000, 500, 60)

    unknown = judge(high, RequestSums(1_000, 50, 2))

    assert (unknown.short_rate, unknown.fires) == (None, None)
    assert judge(RequestSums(10_000, 500, 29), RequestSums(1_000, 50, 5)).fires is None
    assert judge(RequestSums(10_000, 500, 30), RequestSums(1_000, 50, 5)).fires is True
    # One window is enough to say that it does not fire.
    assert judge(RequestSums(10_000, 500, 29), RequestSums(1_000, 1, 5)).fires is False


def test_a_handful_of_failures_alerts_nobody() -> None:
    assert judge(RequestSums(20, 4, 60), RequestSums(5, 4, 5)).fires is False
    assert judge(RequestSums(20, 5, 60), RequestSums(5, 5, 5)).fires is True


def test_without_requests_nothing_burns() -> None:
    quiet = judge(RequestSums(0, 0, 60), RequestSums(0, 0, 5))

    assert (quiet.long_rate, quiet.short_rate, quiet.fires) == (0.0, 0.0, False)


def test_the_budget_is_what_the_objective_allows() -> None:
    calm = judge(RequestSums(1_000, 0, 60), RequestSums(100, 0, 5))

    half = evaluate(RequestSums(100_000, 50, 43_200), calm)
    over = evaluate(RequestSums(100_000, 150, 43_200), calm)

    assert (half.allowed_bad, half.budget_left) == (pytest.approx(100), pytest.approx(0.5))
    assert (half.state, half.known_share, half.is_burning) == (TargetState.MET, 1.0, False)
    assert over.budget_left == pytest.approx(-0.5)
    assert over.state == TargetState.EXHAUSTED


def test_states_in_order_of_urgency() -> None:
    firing = judge(RequestSums(10_000, 500, 60), RequestSums(1_000, 50, 5))
    unknown = judge(RequestSums(), RequestSums())

    assert evaluate(RequestSums(10_000, 500, 60), unknown, firing).state == TargetState.BURNING
    assert evaluate(RequestSums(10_000, 500, 60), unknown).state == TargetState.EXHAUSTED
    assert evaluate(RequestSums(10_000, 0, 60), unknown).state == TargetState.NOT_KNOWN
    nothing = evaluate(RequestSums(), unknown)
    assert (nothing.state, nothing.budget_left) == (TargetState.NOT_KNOWN, None)
    assert nothing.is_burning is None


COUNTS = st.integers(0, 10**9)


@given(total=COUNTS, bad=COUNTS, more=COUNTS)
def test_good_requests_never_shrink_the_budget_and_bad_ones_never_grow_it(
    total: int, bad: int, more: int
) -> None:
    bad = min(bad, total)
    before = evaluate(RequestSums(total, bad, 60)).budget_left
    if before is None:
        return

    good = evaluate(RequestSums(total + more, bad, 60)).budget_left
    worse = evaluate(RequestSums(total + more, bad + more, 60)).budget_left

    assert good is not None
    assert good >= before
    assert worse is not None
    assert worse <= max(before, 1 - 1 / BUDGET) + 1e-6


@given(bad=COUNTS, total=COUNTS, known=st.integers(0, 29))
def test_what_was_not_read_never_decides(bad: int, total: int, known: int) -> None:
    bad = min(bad, total)

    result = judge(RequestSums(total, bad, known), RequestSums(total, bad, 0))

    assert result.fires is None
