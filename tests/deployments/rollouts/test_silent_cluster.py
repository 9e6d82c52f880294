"""A cluster that reports nothing: every rollout ends at its deadline."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

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
            assert decision.effect == Effect.FINISH_ABORT
        elif phase == RolloutPhase.WATCHING:
            assert decision.effect == Effect.COMPLETE, "it has all traffic already"
        else:
            assert decision.effect == Effect.ABORT
