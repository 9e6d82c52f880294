"""Send the links of accounts by e-mail. The token is computed at sending: no row or message of the broker has it."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Final

from django.conf import settings

from portal.accounts.local import links
from portal.accounts.local.models import AccountLink, Invitation, PasswordLink
from portal.core import clock, leases
from portal.core.leases import Lease
from portal.notifications import addresses, gateway
from portal.notifications.gateway import Message
from portal.notifications.models import ChannelKind

logger = logging.getLogger(__name__)
_LEASE_SECONDS: Final = 60
_MODELS: Final[tuple[type[AccountLink], ...]] = (Invitation, PasswordLink)


@dataclass(frozen=True, slots=True)
class Mail:
    to: str
    message: Message


def sweep() -> None:
    for model in _MODELS:
        for pk in leases.due(model):
            lease = leases.claim(model, pk, seconds=_LEASE_SECONDS)
            if lease is not None:
                _send(model, lease)


def _send(model: type[AccountLink], lease: Lease) -> None:
    link = model._default_manager.get(pk=lease.pk)
    if links.why_dead(link):
        leases.release(model, lease, next_check_at=None)
        return
    mail = compose_mail(link)
    try:
        url = addresses.apprise_url(ChannelKind.EMAIL, mail.to, extras={})
        gateway.send(url, mail.message)
    except gateway.Refused as error:
        _finish(model, lease, outcome=str(error))
    except gateway.NotSent as error:
        model._default_manager.filter(pk=link.pk).update(mail_outcome=f"retrying: {error}")
        leases.back_off(model, lease, base_seconds=10, cap_seconds=600)
    else:
        _finish(model, lease, outcome="sent")


def _finish(model: type[AccountLink], lease: Lease, *, outcome: str) -> None:
    at = clock.now() if outcome == "sent" else None
    model._default_manager.filter(pk=lease.pk, lease_token=lease.token).update(
        mail_outcome=outcome, mailed_at=at
    )
    leases.release(model, lease, next_check_at=None)
    logger.info("%s=%s mail %s", model._meta.model_name, lease.pk, outcome)


def compose_mail(link: AccountLink) -> Mail:
    """Raises TypeError for a link of another kind."""
    if isinstance(link, Invitation):
        return _invitation(link)
    if isinstance(link, PasswordLink):
        return _password_link(link)
    raise TypeError(type(link).__name__)


def _invitation(link: Invitation) -> Mail:
    inviter = link.created_by.display_name if link.created_by else "A platform admin"
    body = (
        f"{inviter} invited you to the team {link.team.name} in Slipway, as {link.role}.\n\n"
        f"Choose a username and a password: {_address('invitation', link)}\n\n"
        f"The link works once, until {_end(link)}."
    )
    return Mail(link.email, Message(f"Join {link.team.name} in Slipway", body))


def _password_link(link: PasswordLink) -> Mail:
    body = (
        f"A new password was requested for {link.user.username} in Slipway.\n\n"
        f"Set a new password: {_address('password-link', link)}\n\n"
        f"The link works once, until {_end(link)}. If it was not you, ignore this message: your password does not change."
    )
    return Mail(link.user.email, Message("Reset your Slipway password", body))


def _address(page: str, link: AccountLink) -> str:
    return f"{settings.SLIPWAY_PUBLIC_URL}/{page}/{links.derive_token(link.nonce)}"


def _end(link: AccountLink) -> str:
    return f"{link.expires_at:%d %B %Y, %H:%M} UTC"
