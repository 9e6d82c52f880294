"""The plan of a row: the only reader of its columns `plan` and `steps`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from deployments.models import ChangeRequest, Rollout, RolloutTemplate
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import RolloutPlan

_KEPT: Final = "_kept_plan"


@dataclass(frozen=True, slots=True)
class _Kept:
    """The columns as they were read: where a row is loaded again, they are other objects."""

    plan: Any
    steps: Any
    parsed: RolloutPlan


def plan_of(row: ChangeRequest | Rollout | RolloutTemplate) -> RolloutPlan:
    """Read once for each loaded row: a decision asks for it in many places."""
    kept: _Kept | None = getattr(row, _KEPT, None)
    if kept is None or kept.plan is not row.plan or kept.steps is not row.steps:
        kept = _Kept(row.plan, row.steps, rollout_plan.read_stored(row.plan, row.steps))
        setattr(row, _KEPT, kept)
    return kept.parsed


def columns_of(plan: RolloutPlan) -> dict[str, Any]:
    return {"plan": plan.to_json(), "steps": plan.steps_to_json()}
