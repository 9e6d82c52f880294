"""The people and channels that were notified about a page, and when."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from portal.accounts.models import Team
from portal.notifications.models import Delivery, DeliveryState


@dataclass(frozen=True, slots=True)
class Recipient:
    """A person or a team's channel that a notice was queued for. `has_failed` is true if it did not arrive."""

    name: str
    kind: str
    at: datetime
    has_failed: bool


def list_recipients(
    *, team: Team, events: Collection[str], path: str, since: datetime
) -> list[Recipient]:
    """List who was notified about a page of the team since then, oldest first, in one query."""
    deliveries = Delivery.objects.filter(
        notice__team=team, notice__event__in=events, notice__path=path, notice__at__gte=since
    ).select_related("notice", "channel__user")
    return [_recipient(delivery) for delivery in deliveries.order_by("id")]


def _recipient(delivery: Delivery) -> Recipient:
    channel = delivery.channel
    return Recipient(
        name=channel.user.display_name if channel.user else channel.name,
        kind=channel.get_kind_display(),
        at=delivery.notice.at,
        has_failed=delivery.state in (DeliveryState.FAILED, DeliveryState.DROPPED),
    )
