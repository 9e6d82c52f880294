"""Warn the team of an idle deployment twice, a week apart, before the page offers to stop it first."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import Q
from django.urls import reverse

from deployments.advice.domain.kinds import idle
from deployments.models import AdviceItem
from deployments.states import AdviceState
from portal.core import clock
from portal.core.definitions.figures import format_money
from portal.notifications import events
from portal.notifications import services as notifications

WARNINGS: Final = 2
BETWEEN: Final = timedelta(days=7)


def sweep() -> int:
    """Return the number of warnings. A snoozed or dismissed deployment is not warned about."""
    due = Q(warned_at=None) | Q(warned_at__lte=clock.now() - BETWEEN)
    rows = AdviceItem.objects.filter(due, kind=idle.CODE, state=AdviceState.OPEN)
    items = rows.filter(warnings__lt=WARNINGS).select_related("team", "deployment")
    return sum(_warn(item) for item in items)


def _warn(item: AdviceItem) -> bool:
    number = item.warnings + 1
    with transaction.atomic():
        claimed = AdviceItem.objects.filter(
            pk=item.pk, warnings=item.warnings, state=AdviceState.OPEN
        ).update(warnings=number, warned_at=clock.now())
        if not claimed or item.team is None:
            return False
        notifications.notify(
            team=item.team,
            event=events.ADVICE_IDLE.code,
            subject=f"{item.subject} is idle: warning {number} of {WARNINGS}",
            message=f"No request in the last 7 days. It costs {format_money(item.cost_amount)} a month. "
            "Stop it, or snooze this advice.",
            path=reverse("advice"),
            data={"deployment": item.subject, "warning": number},
        )
    return True
