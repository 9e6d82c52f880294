"""The guards of a plan as whoever approves it reads them, with each query as it was written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from deployments.domain import metric_words, percentile_verdicts, query_guards, rollout_plans
from deployments.domain.guards import KINDS
from deployments.domain.rollout_plans import PlanKind
from deployments.web.prometheus_fields import PERCENTILE_SOURCE


@dataclass(frozen=True, slots=True)
class GuardLine:
    label: str
    source: str
    limit: str
    query: str = ""


def lines_of(plan: Mapping[str, Any]) -> list[GuardLine]:
    """Empty for changes without a plan, and for blue/green, which has no traffic to judge by."""
    if not plan:
        return []
    found = rollout_plans.from_json(plan)
    if found.kind == PlanKind.BLUE_GREEN:
        return []
    counted = [
        GuardLine(
            KINDS[limit.metric].label,
            KINDS[limit.metric].source,
            metric_words.limit_words(limit, None),
        )
        for limit in found.guards
    ]
    percentiles = [
        GuardLine(guard.label, PERCENTILE_SOURCE, percentile_verdicts.limit_words(guard))
        for guard in found.percentiles
    ]
    queries = [
        GuardLine(
            guard.name,
            query_guards.SOURCE,
            f"{guard.limit_words}, {guard.breaches} breaches in a row",
            guard.query,
        )
        for guard in found.queries
    ]
    return [*counted, *percentiles, *queries]
