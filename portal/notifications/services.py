"""Tell people what happened. The one door for the rest of the portal."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from portal.accounts.models import Team
from portal.core import clock
from portal.core.wakeups import wake
from portal.notifications import events, links
from portal.notifications.models import Channel, Delivery, Notice

# The same words about the same thing again within this time are one message.
_SAME = timedelta(minutes=10)
_GIVE_UP: Final = timedelta(hours=6)
_LONGEST_SUBJECT: Final = 200


def notify(
    *, team: Team, event: str, subject: str, message: str, path: str, data: Mapping[str, Any]
) -> None:
    """Write a notice for the team's channels and its members' own, in the caller's transaction.

    `event` is a code of portal.notifications.events, `path` the page that the message leads to.
    With `data={"decide": links.DecisionRequest(…).to_json()}` people who may decide get a single-use link.
    Raises RuntimeError outside a transaction, ValueError for an unknown event.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"told of {event} outside a transaction")
    events.find(event)
    subject = subject[:_LONGEST_SUBJECT]
    digest = _digest(event, subject, message, path, data)
    at = clock.now()
    if Notice.objects.filter(team=team, digest=digest, at__gt=at - _SAME).exists():
        return
    notice = Notice.objects.create(
        team=team,
        event=event,
        subject=subject,
        message=message,
        path=path,
        data=dict(data),
        at=at,
        digest=digest,
    )
    send_to(notice=notice, channels=_wanting(team, event))


def send_to(*, notice: Notice, channels: Iterable[Channel]) -> None:
    """Inside a transaction: one delivery for each, and a link for people who may decide."""
    question = links.decision_of(notice.data)
    for channel in channels:
        delivery = Delivery.objects.create(
            notice=notice,
            channel=channel,
            deadline_at=notice.at + _GIVE_UP,
            next_check_at=notice.at,
        )
        if question is not None and channel.user is not None:
            links.make(delivery=delivery, user=channel.user, question=question)
        wake("notifications.send", delivery.pk)


def _wanting(team: Team, event: str) -> list[Channel]:
    mine = Q(team=team) | Q(user__memberships__team=team, user__is_active=True)
    found = Channel.objects.filter(mine, is_on=True).select_related("user").distinct()
    return [channel for channel in found if not channel.events or event in channel.events]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
