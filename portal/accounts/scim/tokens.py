"""Tokens of identity providers: one for each SCIM client, created by a platform admin, shown once."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import ScimToken, User
from portal.accounts.oidc.gateway import provider_named
from portal.accounts.oidc.providers import Provider
from portal.accounts.policy import Action
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import NotFound

CREATED: Final = register("scim_token.created", "created a provisioning token of")
REVOKED: Final = register("scim_token.revoked", "revoked a provisioning token of")
DAYS: Final = 365
_PREFIX: Final = "scim_"
_SEEN_EVERY: Final = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class NewScimToken:
    """A created token with its plain text, which is not stored."""

    row: ScimToken
    plain: str


def list_tokens(*, actor: User) -> QuerySet[ScimToken]:
    """List the tokens that were not revoked, newest first."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    return ScimToken.objects.filter(revoked_at=None).select_related("created_by")


def create(*, actor: User, provider_name: str) -> NewScimToken:
    """Create a token. Others of the provider stay, so that it can be given the new one without a gap."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    step_up.require(actor)
    provider = provider_named(provider_name)
    plain, at = f"{_PREFIX}{secrets.token_urlsafe(32)}", clock.now()
    row = ScimToken(
        provider=provider.name,
        prefix=plain[:12],
        digest=_digest(plain),
        created_by=actor,
        created_at=at,
        expires_at=at + timedelta(days=DAYS),
    )
    with transaction.atomic():
        row.save()
        trail.record(
            actor=actor,
            action=CREATED,
            obj=row,
            label=provider.label,
            after={"prefix": row.prefix, "expires_at": row.expires_at.isoformat()},
        )
    return NewScimToken(row, plain)


def revoke(*, actor: User, token_id: int) -> None:
    """Revoke a token. Its requests get 401 from now on."""
    policy.require_platform_admin(actor, Action.MANAGE_TEAM)
    with transaction.atomic():
        row = ScimToken.objects.select_for_update().filter(pk=token_id, revoked_at=None).first()
        if row is None:
            raise NotFound(f"There is no provisioning token {token_id}.")
        row.revoked_at = clock.now()
        row.save(update_fields=["revoked_at"])
        trail.record(
            actor=actor,
            action=REVOKED,
            obj=row,
            label=row.provider,
            before={"prefix": row.prefix},
        )


def provider_of(plain: str) -> Provider | None:
    """Return the provider whose token this is, with who made the token. None for an invalid or ended token, or if
    its provider is not set up any more.
    """
    at = clock.now()
    rows = ScimToken.objects.filter(revoked_at=None, expires_at__gt=at)
    row = rows.filter(digest=_digest(plain)).first()
    if row is None:
        return None
    if row.last_used_at is None or at - row.last_used_at > _SEEN_EVERY:
        ScimToken.objects.filter(pk=row.pk).update(last_used_at=at)
    provider = next((item for item in settings.SLIPWAY_OIDC if item.name == row.provider), None)
    return replace(provider, scim_token_by=row.created_by_id) if provider else None


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
