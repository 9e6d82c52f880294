"""Deployments, versions and events of the home page."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, Q, When

from deployments.delivery.domain.progress import STAGES
from deployments.models import Deployment, DeploymentEvent, ModelVersion
from deployments.pages.selectors import deployment_list
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, VersionState
from portal.accounts import policy
from portal.accounts.models import User

_STARTUP_EVENTS = (*STAGES, "rollout started", "rollout preparing")
_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)
_MOST, _MOST_EVENTS = 10, 16


def deployments_to_watch(*, actor: User, team_slug: str, limit: int) -> list[Deployment]:
    """Return the first live deployments: degraded, then progressing, then by name."""
    rows = deployment_list.visible_rows(actor=actor, team_slug=team_slug)
    urgency = Case(
        When(state=DeploymentState.DEGRADED, then=0),
        When(state=DeploymentState.PROGRESSING, then=1),
        default=2,
    )
    return list(rows.order_by(urgency, "name", "pk")[:limit])


def failing(*, actor: User, team_slug: str | None, now: datetime) -> list[Deployment]:
    """List deployments that are degraded, or past the deadline of their start; without a team, of all."""
    is_late = Q(observed_generation__lt=1, progress_deadline_at__lt=now)
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return list(rows.filter(Q(state=DeploymentState.DEGRADED) | is_late)[:_MOST])


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """List versions that were quarantined or failed since `since`."""
    rows = versions.list_versions(actor=actor).filter(model__team__slug=team_slug)
    return list(rows.filter(state__in=_BAD_VERSIONS, created_at__gte=since)[:_MOST])


def has_versions(*, actor: User, team_slug: str) -> bool:
    return versions.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def recent_events(*, actor: User, team_slug: str) -> list[DeploymentEvent]:
    """Return the newest actions and results; the timeline has every intermediate step."""
    team = policy.visible_teams(actor).filter(slug=team_slug)
    rows = (
        DeploymentEvent.objects.filter(deployment__team__in=team.values("pk"))
        .exclude(kind__in=_STARTUP_EVENTS)
        .exclude(kind="state", message__startswith=DeploymentState.PROGRESSING)
    )
    # Of a deployment only its address is shown.
    shown = rows.select_related("deployment__team").only(
        *("at", "kind", "message", "revision_number", "actor_name"),
        *("deployment__name", "deployment__team__slug"),
    )
    return list(shown[:_MOST_EVENTS])
