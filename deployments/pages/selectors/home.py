"""Deployments, versions and events of the home page."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from django.db.models import Case, CharField, DateTimeField, Q, When

from deployments.delivery.domain.progress import STAGES
from deployments.models import Deployment, DeploymentEvent, ModelVersion
from deployments.pages.selectors import deployment_list
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, VersionState
from portal.accounts.models import User
from portal.accounts.visible_queries import VisibleQuery
from portal.core.compiled_queries import Parameter

_STARTUP_EVENTS = (*STAGES, "rollout started", "rollout preparing")
_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)
_MOST, _MOST_EVENTS = 10, 16
_TEAM = Parameter("team", CharField())
_LATE = Q(observed_generation__lt=1, progress_deadline_at__lt=Parameter("now", DateTimeField()))
# Home asks for both every few seconds, and most teams have none.
_FAILING: Final = VisibleQuery(
    lambda teams: Deployment.objects.filter(
        Q(state=DeploymentState.DEGRADED) | _LATE,
        team__in=teams,
        team__slug=_TEAM,
        is_retired=False,
    ).values_list("pk")[:_MOST]
)
_BAD: Final = VisibleQuery(
    lambda teams: (
        versions.versions_in(teams)
        .filter(
            model__team__slug=_TEAM,
            state__in=_BAD_VERSIONS,
            created_at__gte=Parameter("since", DateTimeField()),
        )
        .order_by("-id")
        .values_list("pk")[:_MOST]
    )
)
# What it reads of a deployment is its address. Teams differ too much in size for one plan.
_EVENTS: Final = VisibleQuery(
    lambda teams: (
        DeploymentEvent.objects.filter(
            deployment__team__in=teams.values("pk"), deployment__team__slug=_TEAM
        )
        .exclude(kind__in=_STARTUP_EVENTS)
        .exclude(kind="state", message__startswith=DeploymentState.PROGRESSING)
        .select_related("deployment__team")
        .only(
            *("at", "kind", "message", "revision_number", "actor_name"),
            *("deployment__name", "deployment__team__slug"),
        )[:_MOST_EVENTS]
    ),
    keeps_plan=False,
)


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
    ids = [pk for (pk,) in _FAILING.rows(actor, team=team_slug, now=now)]
    return list(deployments.list_visible_to(actor).filter(pk__in=ids)) if ids else []


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """Quarantined or failed since `since`."""
    ids = [pk for (pk,) in _BAD.rows(actor, team=team_slug, since=since)]
    return list(versions.list_versions(actor=actor).filter(pk__in=ids)) if ids else []


def has_versions(*, actor: User, team_slug: str) -> bool:
    return versions.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def recent_events(*, actor: User, team_slug: str) -> list[DeploymentEvent]:
    """The newest actions and results; the timeline has every intermediate step."""
    return _EVENTS.objects(actor, team=team_slug)
