"""The guards of a rollout plan as its approver reads them, with each query verbatim."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.changes.selectors.subjects import GuardLine
from deployments.guards.domain import formatting, percentile_verdicts, promql
from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain.limits import KINDS
from deployments.models import ChangeRequest
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.quality.selectors import quality
from deployments.states import ChangeKind


def of_change(change: ChangeRequest) -> list[GuardLine]:
    """The golden requests first; named also where there are none."""
    if change.kind != ChangeKind.CANARY:
        return lines_of(change.plan)
    rows = quality.named(change.golden)
    names = ", ".join(f"{row.name} (no. {row.number})" for row in rows)
    limit = f"all within tolerance: {names}" if names else "none saved, so answers are not checked"
    golden = GuardLine("Golden answers", "golden requests, before traffic and at each step", limit)
    return [golden, *lines_of(change.plan)]


def lines_of(plan: Mapping[str, Any]) -> list[GuardLine]:
    """Empty for changes without a plan, and for blue/green, which has no traffic to compare."""
    if not plan:
        return []
    settings = rollout_plan.from_json(plan)
    if settings.kind == PlanKind.BLUE_GREEN:
        return []
    counted = [
        GuardLine(
            KINDS[limit.metric].label,
            KINDS[limit.metric].source,
            formatting.limit_words(limit, None),
        )
        for limit in settings.guards
    ]
    percentiles = [
        GuardLine(guard.label, guard_percentiles.SOURCE, percentile_verdicts.limit_words(guard))
        for guard in settings.percentiles
    ]
    queries = [
        GuardLine(
            guard.name,
            promql.SOURCE,
            f"{guard.limit_words}, {guard.breaches} breaches in a row",
            guard.query,
        )
        for guard in settings.queries
    ]
    return [*counted, *percentiles, *queries]
