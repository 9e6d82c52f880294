"""A rollout as one reconcile pass, or one request of a person, works on it."""

from __future__ import annotations

from dataclasses import dataclass

from deployments.models import Rollout
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.selectors import auto_promotion
from deployments.rollouts.domain.observation import RolloutProgress, TrafficSplit
from deployments.spec.domain import replicas
from deployments.states import RolloutPhase


@dataclass(frozen=True, slots=True)
class RolloutSnapshot:
    """The row, and what was parsed from it once."""

    rollout: Rollout
    progress: RolloutProgress

    @property
    def plan(self) -> RolloutPlan:
        return self.progress.plan


def snapshot_of(rollout: Rollout) -> RolloutSnapshot:
    """Return a snapshot with the plan under the team's current automatic promotion limit."""
    deployment = rollout.deployment
    stable, approved = (
        replicas.least_of(revision.spec, number=revision.number, scale=deployment.scale)
        for revision in (rollout.stable_revision, rollout.candidate_revision)
    )
    progress = RolloutProgress(
        plan=auto_promotion.limited_plan_of(rollout),
        phase=RolloutPhase(rollout.phase),
        step_index=rollout.step_index,
        step_started_at=rollout.step_started_at,
        phase_deadline_at=rollout.deadline_at,
        desired=TrafficSplit(deployment.candidate_weight, deployment.candidate_mirror),
        is_candidate_desired=deployment.candidate_revision_id is not None,
        is_baseline_desired=deployment.baseline_revision_id is not None,
        is_swapped=is_swapped(rollout),
        drain_started_at=rollout.drain_started_at,
        watch_until=rollout.watch_until,
        promoted_to=rollout.promoted_to,
        replicas=approved
        if deployment.candidate_replicas is None
        else deployment.candidate_replicas,
        stable_replicas=stable,
        approved_replicas=approved,
    )
    return RolloutSnapshot(rollout, progress)


def is_swapped(rollout: Rollout) -> bool:
    """Whether the candidate is the stable revision already."""
    return rollout.deployment.stable_revision_id == rollout.candidate_revision_id
