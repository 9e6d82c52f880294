"""Deployments, versions and requests of the home page."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Case, Q, When

from deployments.models import ChangeRequest, Deployment, ModelVersion
from deployments.pages.selectors import deployment_list
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, VersionState
from portal.accounts import policy
from portal.accounts.models import User

_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)
_MOST = 10


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
    """List the first deployments that are degraded, or past the deadline of their start; without a team, of all."""
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return list(rows.filter(_is_failing(now))[:_MOST])


def count_failing(*, actor: User, now: datetime) -> int:
    return deployments.list_visible_to(actor).filter(_is_failing(now)).count()


def _is_failing(now: datetime) -> Q:
    is_late = Q(observed_generation__lt=1, progress_deadline_at__lt=now)
    return Q(state=DeploymentState.DEGRADED) | is_late


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """List versions that were quarantined or failed since `since`."""
    rows = versions.list_versions(actor=actor).filter(model__team__slug=team_slug)
    return list(rows.filter(state__in=_BAD_VERSIONS, created_at__gte=since)[:_MOST])


def has_versions(*, actor: User, team_slug: str) -> bool:
    return versions.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def has_requests(*, actor: User, team_slug: str) -> bool:
    """Whether somebody requested a deployment in the team, whatever became of it."""
    team = policy.visible_teams(actor).filter(slug=team_slug)
    rows = ChangeRequest.objects.filter(team__in=team.values("pk"), deployment__isnull=False)
    return rows.exists()
