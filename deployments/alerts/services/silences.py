"""Silence an alert for some hours, with a reason; and end that early."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.alerts.selectors import alerts
from deployments.models import Alert
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Invalid

MOST_HOURS: Final = 30 * 24
_LONGEST_REASON: Final = 500


def silence(*, actor: User, alert_id: int, hours: int, reason: str) -> Alert:
    """Silence an alert for `hours` with a reason: it leaves the bell and notifies nobody until then.

    An alert of the same subject that opens meanwhile is silent too. Raises Invalid, and Conflict if the alert has
    ended.
    """
    row = alerts.get_visible(actor=actor, alert_id=alert_id)
    policy.require(actor, Action.SILENCE_ALERTS, row.team)
    problems = {}
    if not 1 <= hours <= MOST_HOURS:
        problems["hours"] = f"Use 1 to {MOST_HOURS} hours."
    if not reason.strip() or len(reason) > _LONGEST_REASON:
        problems["reason"] = f"Say why, in {_LONGEST_REASON} characters at most."
    if problems:
        raise Invalid(next(iter(problems.values())), fields=problems)
    at = clock.now()
    before = _facts(row)
    with transaction.atomic():
        row.silenced_until = at + timedelta(hours=hours)
        row.silenced_by, row.silence_reason = actor, reason.strip()
        changed = Alert.objects.filter(pk=row.pk, ended_at=None).update(
            silenced_until=row.silenced_until,
            silenced_by=actor,
            silence_reason=row.silence_reason,
        )
        if not changed:
            raise Conflict("This alert has ended. There is nothing to silence.", code="ended")
        trail.record(
            actor=actor,
            action=audit_actions.ALERT_SILENCED,
            obj=row,
            label=row.subject,
            team_slug=row.team.slug,
            before=before,
            after=_facts(row),
        )
    return row


def unsilence(*, actor: User, alert_id: int) -> Alert:
    row = alerts.get_visible(actor=actor, alert_id=alert_id)
    policy.require(actor, Action.SILENCE_ALERTS, row.team)
    at = clock.now()
    before = _facts(row)
    with transaction.atomic():
        silent = Alert.objects.filter(pk=row.pk, ended_at=None, silenced_until__gt=at)
        if not silent.update(silenced_until=None, silenced_by=None, silence_reason=""):
            raise Conflict("This alert is not silenced.", code="not_silenced")
        row.silenced_until, row.silenced_by, row.silence_reason = None, None, ""
        trail.record(
            actor=actor,
            action=audit_actions.ALERT_UNSILENCED,
            obj=row,
            label=row.subject,
            team_slug=row.team.slug,
            before=before,
            after=_facts(row),
        )
    return row


def _facts(row: Alert) -> dict[str, object]:
    until = row.silenced_until.isoformat() if row.silenced_until else None
    return {"silenced_until": until, "reason": row.silence_reason}
