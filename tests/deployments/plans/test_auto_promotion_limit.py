"""Automatic promotion stops at the team's limit."""

from __future__ import annotations

import pytest

from deployments.plans.domain import auto_promotion_limit
from deployments.plans.domain.steps import Step
from portal.core.definitions import Rejected

STEPS = tuple(
    Step(weight=weight, soak_seconds=60, min_requests=100, auto_promote=True)
    for weight in (5, 25, 50)
)


@pytest.mark.parametrize(
    ("percent", "alone"),
    [
        (100, [True, True, True]),
        (99, [True, True, False]),
        (50, [True, True, False]),
        (49, [True, False, False]),
        (25, [True, False, False]),
        (24, [False, False, False]),
        (0, [False, False, False]),
    ],
)
def test_a_step_goes_on_alone_when_what_comes_next_is_within_the_limit(
    percent: int, alone: list[bool]
) -> None:
    bounded = auto_promotion_limit.within(STEPS, percent)

    assert [step.auto_promote for step in bounded] == alone
    assert [step.weight for step in bounded] == [5, 25, 50]


def test_what_waits_for_a_person_stays_so_whatever_the_limit() -> None:
    by_hand = (Step(weight=5, soak_seconds=60, min_requests=100),)

    assert auto_promotion_limit.within(by_hand, 100) == by_hand
    auto_promotion_limit.require_within(by_hand, 0, team="vision")


def test_a_plan_beyond_the_limit_is_refused_at_its_first_such_step() -> None:
    with pytest.raises(Rejected) as refusal:
        auto_promotion_limit.require_within(STEPS, 25, team="vision")

    assert refusal.value.fields == {
        "steps": "Step 2 would promote automatically to 50%, but the automatic promotion limit of "
        "vision is 25%. Use manual promotion for this step."
    }
