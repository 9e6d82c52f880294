"""Send due deliveries: leased, retried with backoff, abandoned at the deadline."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models import F

from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock, leases
from portal.core.errors import Invalid
from portal.core.leases import Lease
from portal.notifications import addresses, events, gateway, links, vault
from portal.notifications.gateway import Message
from portal.notifications.models import Channel, DecisionLink, Delivery, DeliveryState, Notice

logger = logging.getLogger(__name__)

_LEASE_SECONDS: Final = 60
_FIRST_WAIT_SECONDS: Final = 5
_LONGEST_WAIT_SECONDS: Final = 600


def sweep(*, limit: int = 50) -> int:
    due = leases.due(Delivery, limit=limit)
    for delivery_id in due:
        send(delivery_id=delivery_id)
    return len(due)


def send(*, delivery_id: int) -> None:
    """Send one delivery, unless it is finished or another worker holds the lease."""
    lease = leases.claim(Delivery, delivery_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return
    rows = Delivery.objects.select_related("notice__team", "channel__user", "channel__team")
    delivery = rows.get(pk=delivery_id)
    if delivery.state != DeliveryState.WAITING:
        leases.release(Delivery, lease, next_check_at=None)
        return
    obsolete_reason = _obsolete_reason(delivery)
    if obsolete_reason:
        _finish(delivery, lease, DeliveryState.DROPPED, obsolete_reason)
        return
    _try(delivery, lease)


def _try(delivery: Delivery, lease: Lease) -> None:
    Delivery.objects.filter(pk=delivery.pk).update(attempts=F("attempts") + 1)
    channel = delivery.channel
    try:
        plain = vault.unseal(channel.sealed_address)
        addresses.check_reachable(channel.kind, plain)
        extras = {
            "event": delivery.notice.event,
            "team": _team_of(delivery.notice),
            "url": _absolute(delivery.notice.path),
        }
        gateway.send(
            addresses.apprise_url(channel.kind, plain, extras=extras), compose_message(delivery)
        )
    except (vault.Unreadable, gateway.Refused) as error:
        _finish(delivery, lease, DeliveryState.FAILED, str(error))
    except Invalid as error:
        _finish(delivery, lease, DeliveryState.FAILED, error.message)
    except (gateway.NotSent, OSError) as error:
        _retry_later(delivery, lease, _describe(error))
    else:
        _finish(delivery, lease, DeliveryState.SENT, "sent")


def compose_message(delivery: Delivery) -> Message:
    notice = delivery.notice
    lines = [notice.message, f"{_team_of(notice)}: {_absolute(notice.path)}"]
    link = DecisionLink.objects.filter(delivery=delivery).first()
    if link is not None:
        hours = links.LIFETIME // timedelta(hours=1)
        lines.append(
            f"Decide (personal one-time link, valid {hours} hours): {_absolute(links.path_of(link))}"
        )
    return Message(title=notice.subject, body="\n\n".join(line for line in lines if line))


def _team_of(notice: Notice) -> str:
    return notice.team.slug if notice.team else "platform"


def _absolute(path: str) -> str:
    return f"{settings.SLIPWAY_PUBLIC_URL}{path}"


def _obsolete_reason(delivery: Delivery) -> str:
    channel = delivery.channel
    if not channel.is_on and delivery.notice.event != events.CHANNEL_TEST.code:
        return "the channel is off"
    user = channel.user
    is_test = delivery.notice.event == events.CHANNEL_TEST.code
    team = delivery.notice.team
    if team is None:
        return _obsolete_for_platform(user, delivery.notice)
    if user and not is_test and not policy.is_allowed(user, Action.VIEW, team):
        return f"{user.username} is no longer in {team.slug}"
    return ""


def _obsolete_for_platform(user: User | None, notice: Notice) -> str:
    if user is None or not user.is_active:
        return "the user is no longer active"
    if user.is_platform_admin or user.pk in notice.data.get("people", ()):
        return ""
    return f"{user.username} is no longer a platform admin"


def _describe(error: Exception) -> str:
    return (
        str(error) if isinstance(error, gateway.NotSent) else "the host name could not be resolved"
    )


def _retry_later(delivery: Delivery, lease: Lease, outcome: str) -> None:
    if clock.now() >= delivery.deadline_at:
        _finish(delivery, lease, DeliveryState.FAILED, f"gave up: {outcome}")
        return
    Delivery.objects.filter(pk=delivery.pk).update(outcome=outcome)
    logger.info("notice=%s delivery=%s will be retried", delivery.notice_id, delivery.pk)
    leases.back_off(
        Delivery, lease, base_seconds=_FIRST_WAIT_SECONDS, cap_seconds=_LONGEST_WAIT_SECONDS
    )


def _finish(delivery: Delivery, lease: Lease, state: DeliveryState, outcome: str) -> None:
    at = clock.now()
    written = Delivery.objects.filter(pk=delivery.pk, lease_token=lease.token).update(
        state=state, outcome=outcome, finished_at=at
    )
    leases.release(Delivery, lease, next_check_at=None)
    if written == 0:
        return
    logger.info("notice=%s delivery=%s %s", delivery.notice_id, delivery.pk, state.value)
    if state != DeliveryState.DROPPED:
        Channel.objects.filter(pk=delivery.channel_id).update(
            last_at=at, is_last_sent=state == DeliveryState.SENT, last_outcome=outcome
        )
