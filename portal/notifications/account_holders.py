"""Tell the owner of an account, the other leads of its teams and the platform admins who let somebody into it."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import QuerySet

from portal.accounts.local import links
from portal.accounts.models import AccountHolder, Role, ScimToken, User
from portal.core import clock, leases
from portal.core.leases import Lease
from portal.notifications import addresses, events, gateway, services
from portal.notifications.gateway import Message
from portal.notifications.models import ChannelKind

logger = logging.getLogger(__name__)
_LEASE_SECONDS: Final = 60
_DONE: Final = {
    AccountHolder.Means.INVITATION: "invited",
    AccountHolder.Means.PASSWORD_LINK: "made a password link for",
    AccountHolder.Means.SECOND_FACTOR: "removed the second factors of",
    AccountHolder.Means.PROVIDER: "connected a sign-in provider to the account of",
    AccountHolder.Means.SCIM: "provisioned the account of",
}


def sweep() -> None:
    for pk in leases.due(AccountHolder):
        lease = leases.claim(AccountHolder, pk, seconds=_LEASE_SECONDS)
        if lease is not None:
            _tell(lease)


def announce_scim_tokens() -> None:
    at = clock.now()
    rows = ScimToken.objects.filter(announced_at=None, created_at__gt=at - timedelta(days=1))
    for token in rows.select_related("created_by"):
        with transaction.atomic():
            if not rows.filter(pk=token.pk).update(announced_at=at):
                continue
            services.notify_platform(
                event=events.ACCOUNT_OPENED.code,
                subject=f"{token.created_by.username} created a SCIM token of {token.provider}",
                message=f"Accounts that it provisions count as {token.created_by.username} for approvals, each for "
                "30 days.",
                path="/admin/provisioning",
            )


def _tell(lease: Lease) -> None:
    hold = AccountHolder.objects.select_related("account", "holder").get(pk=lease.pk)
    people = list(_told(hold))
    subject = (
        f"{hold.holder.username} {_DONE[AccountHolder.Means(hold.means)]} {hold.account.username}"
    )
    message = (
        f"Until {hold.ends_at:%d %B %Y} both count as one person: neither approves what the other "
        "requests. If you did not expect this, tell a platform admin."
    )
    with transaction.atomic():
        services.notify_platform(
            event=events.ACCOUNT_OPENED.code,
            subject=subject,
            message=message,
            path="/account/security",
            people=[person.pk for person in people],
        )
    try:
        _mail(people, Message(subject, message))
    except gateway.NotSent:
        leases.back_off(AccountHolder, lease, base_seconds=10, cap_seconds=600)
    else:
        leases.release(AccountHolder, lease, next_check_at=None)


def _told(hold: AccountHolder) -> QuerySet[User]:
    """Return whom to notify, never the holder: the leads of the account's teams and its owner. If the account was
    made by an invitation, its owner is left out.
    """
    teams = hold.account.memberships.values("team")
    leads = User.objects.filter(memberships__team__in=teams, memberships__role=Role.LEAD)
    owner = User.objects.filter(pk=hold.account_id)
    people = leads.exclude(pk=hold.account_id)
    if hold.means != AccountHolder.Means.INVITATION:
        people = leads | owner
    return people.exclude(pk=hold.holder_id).filter(is_active=True).distinct().order_by("pk")


def _mail(people: list[User], message: Message) -> None:
    """Mail the people directly, whatever channels they have. Raises NotSent."""
    if not links.can_mail():
        return
    for person in people:
        if not person.email:
            continue
        try:
            gateway.send(addresses.apprise_url(ChannelKind.EMAIL, person.email, extras={}), message)
        except gateway.Refused as error:
            logger.warning("person=%s was not told: %s", person.pk, error)
