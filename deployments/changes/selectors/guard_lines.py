"""The guards of a rollout plan as its approver reads them, with each query verbatim."""

from __future__ import annotations

from typing import Final

from deployments.changes.selectors.subjects import GuardLine
from deployments.guards.domain import step_verdicts
from deployments.guards.domain.promql import QueryGuard
from deployments.models import ChangeRequest
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.plans.selectors import plans
from deployments.quality.selectors import quality
from deployments.states import ChangeKind

_BASELINE: Final = GuardLine(
    "Compared with",
    "a baseline",
    "as many pods of the stable revision as the candidate has, with the same traffic",
)


def list_guard_lines(change: ChangeRequest) -> list[GuardLine]:
    """List the guards of a change with the golden requests first, which are named even if there are none."""
    if change.kind != ChangeKind.CANARY:
        return _lines_of(change)
    rows = quality.list_by_ids(change.golden)
    names = ", ".join(f"{row.name} (no. {row.number})" for row in rows)
    limit = f"all within tolerance: {names}" if names else "none saved, so answers are not checked"
    golden = GuardLine("Golden answers", "golden requests, before traffic and at each step", limit)
    beside = [_BASELINE] if change.plan and plans.plan_of(change).has_baseline else []
    return [golden, *beside, *_lines_of(change)]


def _lines_of(change: ChangeRequest) -> list[GuardLine]:
    """Return a line for each guard of the plan. Empty for changes without a plan, and for blue/green, which has no
    traffic to compare.
    """
    if not change.plan:
        return []
    plan = plans.plan_of(change)
    if plan.kind == PlanKind.BLUE_GREEN:
        return []
    return [
        GuardLine(
            guard.label,
            guard.source,
            step_verdicts.format_limit(guard),
            guard.query if isinstance(guard, QueryGuard) else "",
            is_dry_run=guard.dry_run,
        )
        for guard in plan.guards.listed
    ]
