"""What the home page reads of deployments and versions."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from deployments.delivery.domain.progress import STAGES
from deployments.models import Deployment, DeploymentEvent, ModelVersion
from deployments.pages.selectors import deployment_list
from deployments.registry.selectors import versions
from deployments.serving.selectors import deployments
from deployments.states import DeploymentState, VersionState
from portal.accounts.models import User

_STEPS_OF_A_START = (*STAGES, "rollout started", "rollout preparing")
# More than any team has.
_MOST = 500
_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)


def deployments_to_watch(*, actor: User, team_slug: str) -> list[Deployment]:
    """All that are live; those that need eyes first: unwell, then moving, then by name."""
    rows = deployment_list.visible_rows(actor=actor, team_slug=team_slug)
    order = {DeploymentState.DEGRADED: 0, DeploymentState.PROGRESSING: 1}
    return sorted(rows[:_MOST], key=lambda row: order.get(DeploymentState(row.state), 2))


def failing(*, actor: User, team_slug: str, now: datetime) -> list[Deployment]:
    """Degraded, or past the time by which they should have come up."""
    late = Q(observed_generation__lt=1, progress_deadline_at__lt=now)
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return list(rows.filter(Q(state=DeploymentState.DEGRADED) | late)[:10])


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """Quarantined or failed lately and not followed by a good version of the same model."""
    rows = versions.list_versions(actor=actor).filter(
        model__team__slug=team_slug, state__in=_BAD_VERSIONS, created_at__gte=since
    )
    return list(rows[:10])


def has_versions(*, actor: User, team_slug: str) -> bool:
    return versions.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def recent_events(*, actor: User, team_slug: str, limit: int) -> QuerySet[DeploymentEvent]:
    """What people did and what came of it; the timeline has every step in between."""
    visible = deployments.list_visible_to(actor, team_slug=team_slug, with_retired=True)
    rows = DeploymentEvent.objects.filter(deployment__in=visible.values("pk"))
    rows = rows.exclude(kind__in=_STEPS_OF_A_START).exclude(
        kind="state", message__startswith=DeploymentState.PROGRESSING
    )
    return rows.select_related("deployment__team")[:limit]
