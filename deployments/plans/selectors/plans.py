"""The plan of a row: the only reader of its columns `plan` and `steps`."""

from __future__ import annotations

from typing import Any

from deployments.models import ChangeRequest, Rollout, RolloutTemplate
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import RolloutPlan


def plan_of(row: ChangeRequest | Rollout | RolloutTemplate) -> RolloutPlan:
    return rollout_plan.stored(row.plan, row.steps)


def columns_of(plan: RolloutPlan) -> dict[str, Any]:
    return {"plan": plan.to_json(), "steps": plan.steps_to_json()}
