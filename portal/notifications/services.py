"""Queue notifications. The interface of this package for the other apps."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from portal.accounts.models import Team
from portal.core import clock
from portal.core.wakeups import wake
from portal.notifications import events, links
from portal.notifications.models import Channel, Delivery, Notice

# Equal notices within this time are sent once.
_SAME = timedelta(minutes=10)
_GIVE_UP: Final = timedelta(hours=6)
_LONGEST_SUBJECT: Final = 200


def notify(
    *,
    team: Team,
    event: str,
    subject: str,
    message: str,
    path: str,
    data: Mapping[str, Any],
    is_for_admins: bool = False,
) -> None:
    """Queue a notice for the channels of the team and of its members, with `is_for_admins` also for those of
    the platform admins. Call inside the event's transaction.

    `event` is a code of portal.notifications.events, `path` the page that the message links to. With
    `data={"decide": links.DecisionRequest(…).to_json()}` users who may decide get a single-use link.
    Raises RuntimeError outside a transaction, ValueError for an unknown event.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"notification of {event} outside a transaction")
    events.find(event)
    subject = subject[:_LONGEST_SUBJECT]
    notice = _add(team, event, subject, message, path, data)
    if notice is not None:
        channels = _subscribed_channels(team, event, with_admins=is_for_admins)
        send_to(notice=notice, channels=channels)


def notify_people(
    *, team: Team, event: str, subject: str, message: str, path: str, people: Collection[int]
) -> None:
    """Notify about something of the team, as `notify` does: only the channels of these people, by id, who are in the
    team or platform admins now.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"notification of {event} outside a transaction")
    events.find(event)
    data = {"people": sorted(people)}
    notice = _add(team, event, subject[:_LONGEST_SUBJECT], message, path, data)
    if notice is not None:
        may_see = Q(user__memberships__team=team) | Q(user__is_platform_admin=True)
        recipients = Q(user__in=people, user__is_active=True) & may_see
        send_to(notice=notice, channels=_subscribed(recipients, event))


def notify_platform(
    *,
    event: str,
    subject: str,
    message: str,
    path: str,
    people: Collection[int] = (),
) -> None:
    """Notify about something that belongs to no team, as `notify` does: the channels of the platform admins and of
    these people, by id.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"notification of {event} outside a transaction")
    events.find(event)
    data = {"people": sorted(people)}
    notice = _add(None, event, subject[:_LONGEST_SUBJECT], message, path, data)
    if notice is not None:
        recipients = Q(user__is_platform_admin=True) | Q(user__in=people)
        channels = _subscribed(Q(user__is_active=True) & recipients, event)
        send_to(notice=notice, channels=channels)


def _add(
    team: Team | None, event: str, subject: str, message: str, path: str, data: Mapping[str, Any]
) -> Notice | None:
    """Add a notice. None if an equal one was just sent."""
    digest = _digest(event, subject, message, path, data)
    at = clock.now()
    if Notice.objects.filter(team=team, digest=digest, at__gt=at - _SAME).exists():
        return None
    return Notice.objects.create(
        team=team,
        event=event,
        subject=subject,
        message=message,
        path=path,
        data=dict(data),
        at=at,
        digest=digest,
    )


def send_to(*, notice: Notice, channels: Iterable[Channel]) -> None:
    """Queue a delivery for each channel, with a link for users who may decide. Needs a transaction."""
    decision = links.read_decision(notice.data)
    for channel in channels:
        delivery = Delivery.objects.create(
            notice=notice,
            channel=channel,
            deadline_at=notice.at + _GIVE_UP,
            next_check_at=notice.at,
        )
        if decision is not None and channel.user is not None:
            links.make(delivery=delivery, user=channel.user, decision=decision)
        wake("notifications.send", delivery.pk)


def _subscribed_channels(team: Team, event: str, *, with_admins: bool) -> list[Channel]:
    recipients = Q(team=team) | Q(user__memberships__team=team, user__is_active=True)
    if with_admins:
        recipients |= Q(user__is_platform_admin=True, user__is_active=True)
    return _subscribed(recipients, event)


def _subscribed(recipients: Q, event: str) -> list[Channel]:
    channels = Channel.objects.filter(recipients, is_on=True).select_related("user").distinct()
    return [channel for channel in channels if not channel.events or event in channel.events]


def _digest(*parts: Any) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
