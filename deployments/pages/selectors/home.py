"""Deployments, versions and events of the home page."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, Q, QuerySet, When

from deployments.delivery.domain.progress import STAGES
from deployments.models import Deployment, DeploymentEvent, ModelVersion
from deployments.pages.selectors import deployment_list
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, VersionState
from portal.accounts.models import User

_STARTUP_EVENTS = (*STAGES, "rollout started", "rollout preparing")
_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)


def deployments_to_watch(*, actor: User, team_slug: str, limit: int) -> list[Deployment]:
    """The first live deployments: degraded, then progressing, then by name."""
    rows = deployment_list.visible_rows(actor=actor, team_slug=team_slug)
    urgency = Case(
        When(state=DeploymentState.DEGRADED, then=0),
        When(state=DeploymentState.PROGRESSING, then=1),
        default=2,
    )
    return list(rows.order_by(urgency, "name", "pk")[:limit])


def failing(*, actor: User, team_slug: str, now: datetime) -> list[Deployment]:
    """Degraded, or past the deadline of their start."""
    late = Q(observed_generation__lt=1, progress_deadline_at__lt=now)
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return list(rows.filter(Q(state=DeploymentState.DEGRADED) | late)[:10])


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """Quarantined or failed since `since`."""
    rows = versions.list_versions(actor=actor).filter(
        model__team__slug=team_slug, state__in=_BAD_VERSIONS, created_at__gte=since
    )
    return list(rows[:10])


def has_versions(*, actor: User, team_slug: str) -> bool:
    return versions.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def recent_events(*, actor: User, team_slug: str, limit: int) -> QuerySet[DeploymentEvent]:
    """Actions and results; the timeline has every intermediate step."""
    visible = deployments.list_visible_to(actor, team_slug=team_slug, with_retired=True)
    rows = DeploymentEvent.objects.filter(deployment__in=visible.values("pk"))
    rows = rows.exclude(kind__in=_STARTUP_EVENTS).exclude(
        kind="state", message__startswith=DeploymentState.PROGRESSING
    )
    return rows.select_related("deployment__team")[:limit]
