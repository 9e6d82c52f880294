"""The guards of a plan as whoever approves it reads them, with each query as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.guards.domain import formatting, percentile_verdicts, promql
from deployments.guards.domain import percentiles as guard_percentiles
from deployments.guards.domain.limits import KINDS
from deployments.models import ChangeRequest
from deployments.plans.domain import rollout_plan
from deployments.plans.domain.rollout_plan import PlanKind
from deployments.quality.selectors import quality
from deployments.states import ChangeKind


@dataclass(frozen=True, slots=True)
class GuardLine:
    label: str
    source: str
    limit: str
    query: str = ""


def of_change(change: ChangeRequest) -> list[GuardLine]:
    """First what the candidate is asked before any traffic; said also where nothing is asked."""
    if change.kind != ChangeKind.CANARY:
        return lines_of(change.plan)
    named = ", ".join(f"{one.name} (no. {one.number})" for one in quality.named(change.golden))
    limit = f"all within tolerance: {named}" if named else "none saved, so answers are not checked"
    golden = GuardLine("Golden answers", "golden requests, before traffic and at each step", limit)
    return [golden, *lines_of(change.plan)]


def lines_of(plan: Mapping[str, Any]) -> list[GuardLine]:
    """Empty for changes without a plan, and for blue/green, which has no traffic to judge by."""
    if not plan:
        return []
    found = rollout_plan.from_json(plan)
    if found.kind == PlanKind.BLUE_GREEN:
        return []
    counted = [
        GuardLine(
            KINDS[limit.metric].label,
            KINDS[limit.metric].source,
            formatting.limit_words(limit, None),
        )
        for limit in found.guards
    ]
    percentiles = [
        GuardLine(guard.label, guard_percentiles.SOURCE, percentile_verdicts.limit_words(guard))
        for guard in found.percentiles
    ]
    queries = [
        GuardLine(
            guard.name,
            promql.SOURCE,
            f"{guard.limit_words}, {guard.breaches} breaches in a row",
            guard.query,
        )
        for guard in found.queries
    ]
    return [*counted, *percentiles, *queries]
