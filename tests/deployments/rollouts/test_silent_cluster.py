"""A cluster that reports nothing: every rollout ends at its deadline, but an abort that nothing confirms."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.domain.steps import Step
from deployments.rollouts.domain import decide
from deployments.rollouts.domain.decide import Effect
from deployments.rollouts.domain.observation import (
    NO_TRAFFIC,
    RolloutObservation,
    RolloutProgress,
    TrafficSplit,
)
from deployments.states import ROLLOUT, RolloutPhase


@pytest.mark.parametrize(
    ("weight", "mirror", "is_current", "said"),
    [
        (50, 0, True, "the route was last seen to send 50% to the candidate"),
        (50, 0, False, "the route was last seen to send 50% to the candidate"),
        (0, 20, True, "the route was last seen to mirror 20% to the candidate"),
        (None, None, True, "the gateway does not say what the route sends to the candidate"),
        (0, 0, False, "the cluster has not answered since the abort"),
    ],
)
def test_no_deadline_makes_an_abort_true_while_the_route_says_otherwise(
    weight: int | None, mirror: int | None, is_current: bool, said: str
) -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    progress = RolloutProgress(
        plan=RolloutPlan(steps=(Step(weight=50, soak_seconds=0, min_requests=0),)),
        phase=RolloutPhase.ABORTING,
        step_index=0,
        step_started_at=None,
        phase_deadline_at=now - timedelta(hours=24),
        desired=NO_TRAFFIC,
        is_candidate_desired=True,
        is_swapped=False,
        drain_started_at=None,
    )
    observed = RolloutObservation(
        is_current=is_current,
        weight=weight,
        mirror=mirror,
        is_candidate_ready=None,
        is_stable_ready=None,
    )
    confirmed = replace(observed, is_current=True, weight=0, mirror=0)

    decision = decide.decide(progress, observed, now)

    assert (decision.effect, decision.message) == (Effect.WAIT, f"not confirmed: {said}")
    assert decide.decide(progress, confirmed, now).effect == Effect.START_DRAIN


def test_a_plan_that_is_left_alone_with_a_silent_cluster_ends() -> None:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    for phase in RolloutPhase:
        progress = RolloutProgress(
            plan=RolloutPlan(steps=(Step(weight=10, soak_seconds=0, min_requests=0),)),
            phase=phase,
            step_index=0,
            step_started_at=None,
            phase_deadline_at=now - timedelta(seconds=1),
            desired=NO_TRAFFIC if phase == RolloutPhase.ABORTING else TrafficSplit(10),
            is_candidate_desired=True,
            is_swapped=False,
            drain_started_at=None,
        )
        silent = RolloutObservation(
            is_current=False, weight=None, is_candidate_ready=None, is_stable_ready=None
        )

        decision = decide.decide(progress, silent, now)

        if not ROLLOUT[phase]:
            assert decision.effect == Effect.WAIT
        elif phase == RolloutPhase.ABORTING:
            assert decision.effect == Effect.WAIT, "the route may still send to the candidate"
            assert decision.message.startswith("not confirmed: ")
        elif phase == RolloutPhase.WATCHING:
            assert decision.effect == Effect.COMPLETE, "it has all traffic already"
        else:
            assert decision.effect == Effect.ABORT
