"""Single-use links: the token is in the link only, its SHA-256 in the row.

A link is opened once by its token and from then on named by the digest, which the session keeps.
"""

from __future__ import annotations

import hashlib
import secrets
from http import HTTPStatus
from typing import Any, Final, TypeVar

from django.conf import settings

from portal.accounts.local.models import AccountLink
from portal.core import clock, sealing
from portal.core.errors import DomainError


class LinkDead(DomainError):
    """The message says what to do."""

    code = "link_dead"
    status = HTTPStatus.GONE
    title = "This link no longer works"


LinkT = TypeVar("LinkT", bound=AccountLink)
_PURPOSE: Final = "account links"


def can_mail() -> bool:
    """Whether links are sent: it takes a mail server, and an address that links begin with."""
    return bool(settings.SLIPWAY_SMTP_URL and settings.SLIPWAY_PUBLIC_URL)


def new_fields() -> dict[str, Any]:
    """Return the fields of a row that make a link."""
    nonce = secrets.token_hex(16)
    return {"nonce": nonce, "digest": digest_of(derive_token(nonce))}


def derive_token(nonce: str) -> str:
    return sealing.derive_token(_PURPOSE, nonce)


def digest_of(token: str) -> str:
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()


def why_dead(link: AccountLink) -> str:
    """Return why the link cannot be used. Empty while it can."""
    if link.used_at is not None:
        return "used"
    if link.revoked_at is not None:
        return "revoked"
    return "expired" if link.expires_at <= clock.now() else ""


def use(model: type[LinkT], link: LinkT, **fields: Any) -> bool:
    """Use the link inside the transaction of what it is for. False when somebody was faster."""
    at = clock.now()
    rows = model._default_manager.filter(
        pk=link.pk, used_at=None, revoked_at=None, expires_at__gt=at
    )
    return bool(rows.update(used_at=at, next_check_at=None, **fields))


def revoke(model: type[LinkT], **which: Any) -> int:
    """Revoke the open links that fit; the number of them."""
    rows = model._default_manager.filter(used_at=None, revoked_at=None, **which)
    return rows.update(revoked_at=clock.now(), next_check_at=None)
