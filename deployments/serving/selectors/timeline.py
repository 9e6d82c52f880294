"""Read the timeline of a deployment, and the change requests that its events belong to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from django.db.models import Prefetch, Q, QuerySet

from deployments.models import Approval, ChangeRequest, Deployment, DeploymentEvent, Rollout
from deployments.serving.domain import event_meanings
from deployments.serving.domain.event_groups import RequestSpan
from deployments.serving.domain.event_meanings import EventTopic
from deployments.states import ChangeState

_RAN: Final = (ChangeState.APPROVED, ChangeState.APPLYING, ChangeState.DONE, ChangeState.FAILED)


def list_events(
    deployment: Deployment, *, topic: EventTopic | None = None
) -> QuerySet[DeploymentEvent]:
    """Return the timeline, newest first. `topic` None means all of it."""
    events = DeploymentEvent.objects.filter(deployment=deployment)
    return events if topic is None else events.filter(_about(topic))


def list_requests(
    deployment: Deployment, *, first_at: datetime, last_at: datetime
) -> list[ChangeRequest]:
    """Return the requests to which events of this time can belong, the newest first, with the names to show."""
    rows = ChangeRequest.objects.filter(deployment=deployment, submitted_at__lte=last_at)
    earlier = rows.filter(submitted_at__lte=first_at).order_by("-submitted_at", "-id")
    # Later events, such as that of its end, still belong to the last request before the first event.
    before = list(earlier.values_list("submitted_at", flat=True)[:1])
    if before:
        rows = rows.filter(submitted_at__gte=before[0])
    shown = rows.select_related("requester", "rollout", "revision__version__model").only(
        *("kind", "state", "submitted_at", "finished_at", "deployment", "pipeline"),
        *("requester__username", "requester__first_name", "requester__last_name"),
        *("rollout__id", "revision__number", "revision__version__number"),
        "revision__version__model__name",
    )
    approvals = Approval.objects.filter(is_approved=True, void_reason="").select_related("user")
    return list(shown.prefetch_related(Prefetch("approvals", approvals)).order_by("-id"))


def find_spans(requests: Sequence[ChangeRequest]) -> list[RequestSpan]:
    return [
        RequestSpan(
            request_id=change.pk,
            begun_at=change.submitted_at,
            applied_at=_find_approval_time(change),
            ended_at=change.finished_at,
            has_rollout=hasattr(change, "rollout"),
        )
        for change in requests
        if change.submitted_at is not None
    ]


def find_newest_rollout(deployment: Deployment) -> int | None:
    """Return the id of the rollout that the deployment's page of rollouts shows."""
    ids = Rollout.objects.filter(deployment=deployment).order_by("-id")
    return ids.values_list("pk", flat=True).first()


def _find_approval_time(change: ChangeRequest) -> datetime | None:
    """Return when the last approval was given; what needed none may run from its request on."""
    if change.state not in _RAN:
        return None
    return max((approval.at for approval in change.approvals.all()), default=change.submitted_at)


def _about(topic: EventTopic) -> Q:
    """Return the condition that `event_meanings.find_topic` evaluates for one event."""
    health = Q(kind__in=event_meanings.HEALTH_KINDS)
    for state in event_meanings.HEALTH_STATES:
        health |= Q(kind=event_meanings.STATE_KIND, message__startswith=state)
    topics = {
        EventTopic.REQUESTS: Q(kind__in=event_meanings.REQUEST_KINDS),
        EventTopic.ROLLOUTS: Q(kind__startswith=event_meanings.ROLLOUT_PREFIX),
        EventTopic.HEALTH: health,
    }
    if topic == EventTopic.MACHINE:
        return ~(topics[EventTopic.REQUESTS] | topics[EventTopic.ROLLOUTS] | health)
    return topics[topic]
