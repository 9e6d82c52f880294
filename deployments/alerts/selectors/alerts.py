"""Alerts of the teams that a person may see."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from deployments.alerts.domain.signals import AlertState
from deployments.models import Alert
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Actor
from portal.core import clock
from portal.core.errors import NotFound


def state_of(row: Alert) -> AlertState:
    if row.ended_at is not None:
        return AlertState.ENDED
    is_silenced = row.silenced_until is not None and row.silenced_until > clock.now()
    return AlertState.SILENCED if is_silenced else AlertState.OPEN


def list_visible_to(
    actor: Actor, *, team_slug: str = "", state: str = "", kind: str = ""
) -> QuerySet[Alert]:
    """Return the alerts of the actor's teams, the newest first."""
    rows = Alert.objects.filter(team__in=policy.visible_teams(actor))
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if kind:
        rows = rows.filter(kind=kind)
    if state:
        rows = rows.filter(_in_state(AlertState(state), clock.now()))
    return rows.select_related("team", "deployment", "silenced_by")


def get_visible(*, actor: Actor, alert_id: int) -> Alert:
    row = list_visible_to(actor).filter(pk=alert_id).first()
    if row is None:
        raise NotFound(f"Alert {alert_id} does not exist, or you are not in its team.")
    return row


def list_open(actor: Actor, *, team_slug: str, limit: int) -> list[Alert]:
    """List a team's open alerts that are not silenced, the newest first."""
    rows = list_visible_to(actor, team_slug=team_slug, state=AlertState.OPEN)
    return list(rows.order_by("-opened_at", "-pk")[:limit])


def list_open_of_all(actor: Actor, *, limit: int) -> list[Alert]:
    """List the open alerts of all the actor's teams that are not silenced, the newest first."""
    rows = list_visible_to(actor, state=AlertState.OPEN)
    return list(rows.order_by("-opened_at", "-pk")[:limit])


def count_open(user: User) -> int:
    """Count open alerts that are not silenced, for the bell of every page."""
    return list_visible_to(user, state=AlertState.OPEN).count()


def _in_state(state: AlertState, now: datetime) -> Q:
    if state == AlertState.ENDED:
        return Q(ended_at__isnull=False)
    silenced = Q(silenced_until__gt=now)
    # Not ~silenced: of a null that is unknown, not true.
    loud = Q(silenced_until=None) | Q(silenced_until__lte=now)
    return Q(ended_at=None) & (silenced if state == AlertState.SILENCED else loud)
