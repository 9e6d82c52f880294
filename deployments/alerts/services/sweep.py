"""Open and end alerts, and tell teams about both.

Each effect is one compare-and-swap, so repeated and concurrent runs, and a worker that dies between two effects, open an
alert once, end it once, and notify each once: the notification is queued in the transaction that records it.
"""

from __future__ import annotations

import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from deployments.alerts.domain import catalogue
from deployments.alerts.selectors import signals
from deployments.alerts.selectors.signals import Signal
from deployments.models import Alert
from portal.core import clock
from portal.notifications import events
from portal.notifications import services as notifications

logger = logging.getLogger(__name__)


def sweep() -> None:
    at = clock.now()
    current = {(s.team.pk, s.kind, s.key): s for s in signals.all_signals(at=at)}
    open_rows = {
        (row.team_id, row.kind, row.key): row
        for row in Alert.objects.filter(ended_at=None).select_related("team")
    }
    for key, signal in current.items():
        if signal.finding.is_firing and key not in open_rows:
            _open(signal, at)
    for key, row in open_rows.items():
        found = current.get(key)
        # Stopped, retired or removed: nobody can act on it any more.
        if found is None or found.finding.is_firing is False:
            _end(row, at)
    notify_after_silences(at)


def _open(signal: Signal, at: datetime) -> None:
    """Open an alert, which keeps a silence of the same subject."""
    last = Alert.objects.filter(
        team=signal.team, kind=signal.kind, key=signal.key, silenced_until__gt=at
    ).first()
    row = Alert(
        team=signal.team,
        kind=signal.kind,
        key=signal.key,
        deployment=signal.deployment,
        subject=signal.subject[:200],
        message=signal.finding.message,
        path=signal.path,
        opened_at=at,
    )
    if last is not None:
        row.silenced_until, row.silenced_by = last.silenced_until, last.silenced_by
        row.silence_reason = last.silence_reason
    # Another worker may have opened it since.
    Alert.objects.bulk_create([row], ignore_conflicts=True)
    logger.info("alert opened kind=%s key=%s team=%s", row.kind, row.key, signal.team.slug)


def _end(row: Alert, at: datetime) -> None:
    with transaction.atomic():
        if not Alert.objects.filter(pk=row.pk, ended_at=None).update(ended_at=at):
            return
        row.refresh_from_db(fields=["told_at", "silenced_until"])
        is_silenced = row.silenced_until is not None and row.silenced_until > at
        if row.told_at is not None and not is_silenced:
            _notify(row, events.ALERT_ENDED.code, f"Ended: {row.subject}")


def notify_after_silences(at: datetime) -> None:
    """Notify a silenced alert after its silence, if it is still open then."""
    notifying = [code for code, kind in catalogue.KINDS.items() if kind.notifies]
    loud = Q(silenced_until=None) | Q(silenced_until__lte=at)
    rows = Alert.objects.filter(loud, ended_at=None, told_at=None, kind__in=notifying)
    for row in rows.select_related("team").order_by("pk"):
        with transaction.atomic():
            not_notified = Alert.objects.filter(loud, pk=row.pk, ended_at=None, told_at=None)
            if not_notified.update(told_at=at):
                _notify(row, events.ALERT_OPENED.code, row.subject)


def _notify(row: Alert, event: str, subject: str) -> None:
    is_opening = event == events.ALERT_OPENED.code
    kind = catalogue.KINDS.get(row.kind)
    advice = f" {kind.advice}" if kind and is_opening else ""
    notifications.notify(
        team=row.team,
        event=event,
        subject=subject,
        message=f"{row.message}{advice}",
        path=row.path or reverse("alerts"),
        data={"alert_id": row.pk},
    )
