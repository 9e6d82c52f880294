"""Personal API tokens, shown once and stored as a digest."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import CharField, DateTimeField

from portal.accounts.models import ApiToken, User
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.compiled_queries import CompiledQuery, Parameter
from portal.core.errors import Invalid, NotFound

CREATED = register("token.made", "created an API token")
REVOKED = register("token.revoked", "revoked an API token")
_PREFIX = "slp_"
_MAX_DAYS = 365
_VALID = CompiledQuery(
    lambda: (
        ApiToken.objects.select_related("user")
        .filter(
            digest=Parameter("digest", CharField()),
            expires_at__gt=Parameter("at", DateTimeField()),
            revoked_at=None,
            user__is_active=True,
        )
        .order_by()
    )
)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A created token with its plain text, which is not stored."""

    row: ApiToken
    plain: str


def create(*, actor: User, name: str, days: int = 90) -> NewToken:
    """Raises Invalid for an empty name or a lifetime outside 1..365 days."""
    if not name.strip():
        raise Invalid(
            "Give the token a name that says where it is used.", fields={"name": "required"}
        )
    if not 1 <= days <= _MAX_DAYS:
        raise Invalid(
            f"The lifetime must be 1 to {_MAX_DAYS} days.",
            fields={"days": f"1 to {_MAX_DAYS}"},
        )
    plain = _PREFIX + secrets.token_urlsafe(32)
    at = clock.now()
    with transaction.atomic():
        row = ApiToken.objects.create(
            user=actor,
            name=name.strip(),
            prefix=plain[:12],
            digest=_digest(plain),
            created_at=at,
            expires_at=at + timedelta(days=days),
        )
        trail.record(actor=actor, action=CREATED, obj=row, label=row.name)
    return NewToken(row=row, plain=plain)


def revoke(*, actor: User, token_id: int) -> None:
    with transaction.atomic():
        row = ApiToken.objects.filter(pk=token_id, user=actor, revoked_at=None).first()
        if row is None:
            raise NotFound("The token does not exist or is already revoked.")
        ApiToken.objects.filter(pk=row.pk).update(revoked_at=clock.now())
        trail.record(actor=actor, action=REVOKED, obj=row, label=row.name)


def user_of(plain: str) -> User | None:
    """The active owner of a valid token, or None. Updates the last use at most once a minute."""
    at = clock.now()
    row = _VALID.first(digest=_digest(plain), at=at)
    if row is None:
        return None
    if row.last_used_at is None or at - row.last_used_at > timedelta(minutes=1):
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=at)
    return row.user


def list_of(user: User) -> list[ApiToken]:
    return list(ApiToken.objects.filter(user=user))


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
