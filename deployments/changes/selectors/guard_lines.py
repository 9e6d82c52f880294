"""The guards of a rollout plan as its approver reads them, with each query verbatim."""

from __future__ import annotations

from deployments.changes.selectors.subjects import GuardLine
from deployments.guards.domain import formatting, percentile_verdicts, promql
from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain.limits import KINDS
from deployments.models import ChangeRequest
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.plans.selectors import plans
from deployments.quality.selectors import quality
from deployments.states import ChangeKind


def of_change(change: ChangeRequest) -> list[GuardLine]:
    """The golden requests first; named also where there are none."""
    if change.kind != ChangeKind.CANARY:
        return _lines_of(change)
    rows = quality.named(change.golden)
    names = ", ".join(f"{row.name} (no. {row.number})" for row in rows)
    limit = f"all within tolerance: {names}" if names else "none saved, so answers are not checked"
    golden = GuardLine("Golden answers", "golden requests, before traffic and at each step", limit)
    return [golden, *_lines_of(change)]


def _lines_of(change: ChangeRequest) -> list[GuardLine]:
    """Empty for changes without a plan, and for blue/green, which has no traffic to compare."""
    if not change.plan:
        return []
    plan = plans.plan_of(change)
    if plan.kind == PlanKind.BLUE_GREEN:
        return []
    counted = [
        GuardLine(
            KINDS[limit.metric].label,
            KINDS[limit.metric].source,
            formatting.format_limit(limit, None),
            is_dry_run=limit.dry_run,
        )
        for limit in plan.guards.limits
    ]
    percentiles = [
        GuardLine(
            guard.label,
            guard_percentiles.SOURCE,
            percentile_verdicts.format_limit(guard),
            is_dry_run=guard.dry_run,
        )
        for guard in plan.guards.percentiles
    ]
    queries = [
        GuardLine(
            guard.name,
            promql.SOURCE,
            f"{guard.limit_text}, {guard.breaches} breaches in a row",
            guard.query,
            is_dry_run=guard.dry_run,
        )
        for guard in plan.guards.queries
    ]
    return [*counted, *percentiles, *queries]
