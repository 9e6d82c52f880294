"""Events of a deployment in the time of its charts: marks, and why there are no readings."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from django.db.models import Q

from deployments.models import Deployment, DeploymentEvent
from deployments.pages.selectors import cost_marks
from deployments.serving.domain import chart_events
from deployments.serving.domain.chart_events import DeploymentHistory, StateChange
from deployments.serving.selectors import timeline
from fleet.costs.domain.change_marks import ChangeMark

_NEWEST: Final = 300


@dataclass(frozen=True, slots=True)
class ChartHistory:
    """The marks of a deployment's charts, oldest first, and its states."""

    marks: list[ChangeMark]
    states: DeploymentHistory


def read_history(deployment: Deployment, start: datetime, end: datetime) -> ChartHistory:
    """Read what happened in [start, end), in two queries, with the last state before."""
    events = timeline.list_events(deployment)
    before = events.filter(kind=chart_events.STATE_KIND, at__lt=start).order_by("-at", "-id")
    is_shown = Q(kind__in=chart_events.KINDS, at__gte=start, at__lt=end)
    rows = sorted(
        events.filter(is_shown | Q(pk=before.values("pk")[:1]))[:_NEWEST],
        key=lambda event: (event.at, event.pk),
    )
    marks = [
        ChangeMark(event.at, text)
        for event in rows
        if event.at >= start and (text := _describe(event))
    ]
    marks += cost_marks.list_applied_changes(deployment, start, end)
    return ChartHistory(sorted(marks), _states(deployment, rows))


def _describe(event: DeploymentEvent) -> str:
    return chart_events.describe_event(event.kind, event.message, event.revision_number)


def _states(deployment: Deployment, events: list[DeploymentEvent]) -> DeploymentHistory:
    states = [
        StateChange(event.at, chart_events.parse_state(event.message))
        for event in events
        if event.kind == chart_events.STATE_KIND
    ]
    if not states:
        states = [StateChange(deployment.created_at, deployment.state)]
    cluster = deployment.cluster
    return DeploymentHistory(
        created_at=deployment.created_at,
        first_ready_at=deployment.first_ready_at,
        states=states,
        unreachable_at=[
            event.at for event in events if event.kind == chart_events.UNREACHABLE_KIND
        ],
        unreachable_since=cluster.last_seen_at if cluster.is_reachable is False else None,
    )
