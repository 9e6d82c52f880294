"""The serving spec of a rollout's baseline: that of stable, with the replicas of the candidate."""

from __future__ import annotations

from deployments.manifests.selectors import rendering
from deployments.models import Deployment
from deployments.plans.domain import candidate_replicas
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.spec.domain import replicas
from deployments.spec.domain.serving_spec import ServingSpec


def spec_of(
    deployment: Deployment, plan: RolloutPlan | None, candidate: ServingSpec
) -> ServingSpec | None:
    """Return the spec of the baseline at the step where it is largest. None for a plan without a baseline."""
    if plan is None or not plan.has_baseline or deployment.stable_revision is None:
        return None
    stable = rendering.spec_of(deployment.stable_revision)
    count = candidate_replicas.count_baseline(
        plan, stable=stable.min_replicas, approved=candidate.min_replicas
    )
    return replicas.reduce_replicas(stable, count) if count else None
