"""What a team lets its rollouts do by themselves."""

from __future__ import annotations

from deployments.models import Rollout, RolloutLimit
from deployments.plans.domain import auto_promotion_limit
from deployments.plans.domain.steps import Step


def limit_of(team_id: int) -> RolloutLimit | None:
    return RolloutLimit.objects.filter(team_id=team_id).select_related("set_by").first()


def percent_of(team_id: int) -> int:
    found = limit_of(team_id)
    return auto_promotion_limit.NO_LIMIT if found is None else found.percent


def steps_of(rollout: Rollout) -> tuple[Step, ...]:
    """As they hold now: a limit that was lowered since takes back what the plan was allowed."""
    steps = tuple(Step(**step) for step in rollout.steps)
    if not any(step.auto_promote for step in steps):
        return steps
    return auto_promotion_limit.within(steps, percent_of(rollout.deployment.team_id))
