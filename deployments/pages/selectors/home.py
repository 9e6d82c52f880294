"""What the home page reads of deployments and versions."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from deployments.domain.progress import STAGES
from deployments.domain.states import DeploymentState, VersionState
from deployments.models import Deployment, DeploymentEvent, ModelVersion
from deployments.selectors import deployments, pages_list, registry
from portal.accounts.models import User

_STEPS_OF_A_START = (*STAGES, "rollout started", "rollout preparing")
_BAD_VERSIONS = (VersionState.QUARANTINED, VersionState.FAILED)


def newest_deployments(*, actor: User, team_slug: str, limit: int) -> list[Deployment]:
    """Those that need eyes first: unwell, then moving, then by name."""
    rows = pages_list.visible_rows(actor=actor, team_slug=team_slug)
    order = {DeploymentState.DEGRADED: 0, DeploymentState.PROGRESSING: 1}
    found = sorted(rows[:200], key=lambda row: order.get(DeploymentState(row.state), 2))
    return found[:limit]


def failing(*, actor: User, team_slug: str, now: datetime) -> list[Deployment]:
    """Degraded, or past the time by which they should have come up."""
    late = Q(observed_generation__lt=1, progress_deadline_at__lt=now)
    rows = deployments.list_visible_to(actor, team_slug=team_slug)
    return list(rows.filter(Q(state=DeploymentState.DEGRADED) | late)[:10])


def bad_versions(*, actor: User, team_slug: str, since: datetime) -> list[ModelVersion]:
    """Quarantined or failed lately and not followed by a good version of the same model."""
    rows = registry.list_versions(actor=actor).filter(
        model__team__slug=team_slug, state__in=_BAD_VERSIONS, created_at__gte=since
    )
    return list(rows[:10])


def has_versions(*, actor: User, team_slug: str) -> bool:
    return registry.list_versions(actor=actor).filter(model__team__slug=team_slug).exists()


def recent_events(*, actor: User, team_slug: str, limit: int) -> QuerySet[DeploymentEvent]:
    """What people did and what came of it; the timeline has every step in between."""
    visible = deployments.list_visible_to(actor, team_slug=team_slug, with_retired=True)
    rows = DeploymentEvent.objects.filter(deployment__in=visible.values("pk"))
    rows = rows.exclude(kind__in=_STEPS_OF_A_START).exclude(
        kind="state", message__startswith=DeploymentState.PROGRESSING
    )
    return rows.select_related("deployment__team")[:limit]
