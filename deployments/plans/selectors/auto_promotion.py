"""The automatic promotion limit of a team, and the plan of a rollout within it."""

from __future__ import annotations

from deployments.models import Rollout, RolloutLimit
from deployments.plans.domain import auto_promotion_limit
from deployments.plans.domain.rollout_plan import RolloutPlan
from deployments.plans.selectors import plans
from portal.core.single_row import find_one


def limit_of(team_id: int) -> RolloutLimit | None:
    return find_one(RolloutLimit.objects.filter(team_id=team_id).select_related("set_by"))


def percent_of(team_id: int) -> int:
    limit = limit_of(team_id)
    return auto_promotion_limit.NO_LIMIT if limit is None else limit.percent


def limited_plan_of(rollout: Rollout) -> RolloutPlan:
    """Return the approved plan under the present limit: one that was lowered since applies at once."""
    plan = plans.plan_of(rollout)
    if not any(step.auto_promote for step in plan.steps):
        return plan
    percent = percent_of(rollout.deployment.team_id)
    return plan.with_steps(auto_promotion_limit.within(plan.steps, percent))
