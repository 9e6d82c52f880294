"""Replicas of the candidate by the traffic of its step."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from deployments.guards.domain.load import LoadDifference, PodLoad
from deployments.plans.domain import candidate_replicas, rollout_plan

pods, percent = st.integers(1, 300), st.integers(1, 99)


@pytest.mark.parametrize(
    ("weight", "stable", "approved", "count"),
    [
        # One replica is one at any weight.
        (5, 1, 1, 1),
        (50, 1, 1, 1),
        # Equal load with stable's 95%: 19 stable pods beside one.
        (5, 19, 19, 1),
        (5, 20, 20, 2),
        (25, 4, 4, 2),
        (25, 3, 3, 1),
        (50, 4, 4, 4),
        # Never more than approved, and all of it before any traffic and with all of it.
        (75, 4, 4, 4),
        (50, 8, 4, 4),
        (0, 4, 6, 6),
        (100, 4, 6, 6),
    ],
)
def test_the_candidate_has_as_many_as_its_share_needs(
    weight: int, stable: int, approved: int, count: int
) -> None:
    assert candidate_replicas.at_weight(weight, stable=stable, approved=approved) == count


@given(weight=percent, stable=pods, is_mirrored=st.booleans())
def test_they_are_the_fewest_whose_load_is_not_above_stables(
    weight: int, stable: int, *, is_mirrored: bool
) -> None:
    count = candidate_replicas.at_weight(
        weight, stable=stable, approved=100_000, is_mirrored=is_mirrored
    )
    of_stable = 100 if is_mirrored else 100 - weight
    load = PodLoad(of_stable, weight, stable, count).ratio
    assert load is not None
    assert load <= 1
    if count > 1:
        fewer = PodLoad(of_stable, weight, stable, count - 1).ratio
        assert fewer is not None
        assert fewer > 1, "one less would be enough"


@given(weight=percent, stable=pods, approved=pods, is_mirrored=st.booleans())
def test_more_traffic_never_takes_replicas_away(
    weight: int, stable: int, approved: int, *, is_mirrored: bool
) -> None:
    counts = [
        candidate_replicas.at_weight(
            each, stable=stable, approved=approved, is_mirrored=is_mirrored
        )
        for each in (weight, min(99, weight + 1), 100 if not is_mirrored else 99)
    ]
    assert counts == sorted(counts)
    assert counts[0] >= 1
    assert counts[-1] <= approved


@given(stable=st.integers(20, 300), weight=st.integers(5, 50))
def test_of_many_replicas_times_are_comparable_at_every_usual_step(
    stable: int, weight: int
) -> None:
    """From 3 of the candidate on, rounding up takes less than a third of the load away."""
    count = candidate_replicas.at_weight(weight, stable=stable, approved=stable)

    difference = PodLoad(100 - weight, weight, stable, count).difference

    assert count < 3 or difference == LoadDifference.NONE


def test_a_plan_ends_with_all_that_was_approved() -> None:
    steps = [{"weight": weight, "soak_seconds": 0, "min_requests": 0} for weight in (5, 50, 100)]
    canary = rollout_plan.check({}, steps)
    shadow = rollout_plan.check({"kind": "shadow"}, steps)
    blue_green = rollout_plan.check({"kind": "blue-green"}, [])

    def counts(plan: rollout_plan.RolloutPlan) -> list[int]:
        return [
            candidate_replicas.at_step(plan, index, stable=8, approved=8)
            for index in range(len(plan.steps) + 1)
        ]

    assert counts(canary) == [1, 8, 8, 8]
    assert counts(shadow) == [1, 4, 8, 8]
    assert counts(blue_green) == [8, 8]
    assert counts(rollout_plan.read_stored({}, [])) == [8], "it takes over as soon as it is ready"
