"""The requests of a deployment's callers, and their part of its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from deployments.models import Deployment
from fleet.costs.selectors import callers
from fleet.costs.selectors.callers import CallerCost, Total
from fleet.telemetry.selectors import caller_readings
from portal.core import clock


@dataclass(frozen=True, slots=True)
class CallerUsage:
    """The use of a deployment by caller since `start`. `problem` says why nothing is counted now; empty while it is."""

    start: datetime
    rows: Sequence[CallerCost]
    total: Total
    problem: str


def this_month(deployment: Deployment) -> CallerUsage:
    now = clock.now()
    start = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    rows = callers.rows(
        team_slug=deployment.team.slug, start=start, end=now, deployment=deployment.name
    )
    return CallerUsage(
        start=start,
        rows=rows,
        total=callers.sum_rows(rows),
        problem=caller_readings.describe_problem(cluster_id=deployment.cluster_id, now=now),
    )
