"""API tokens of people and service accounts: shown once, stored as a digest, limited by scopes."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db import transaction

from portal.accounts import scopes as token_scopes
from portal.accounts import teams
from portal.accounts.local import step_up
from portal.accounts.models import ApiToken, Team, User
from portal.accounts.scopes import Scope, TokenGrant
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Forbidden, Invalid, NotFound

CREATED = register("token.made", "created an API token")
REVOKED = register("token.revoked", "revoked an API token")
_PREFIX = "slp_"
_LONGEST_DAYS: Final = 365
# Of a token with which a person decides in a terminal: too short for scripts.
DECIDE_DAYS: Final = 1
DEFAULT_DAYS: Final = 90
_LIFETIMES: Final = (1, 7, 30, 90, 180, 365)


@dataclass(frozen=True, slots=True)
class NewToken:
    """A created token with its plain text, which is not stored."""

    row: ApiToken
    plain: str


def max_days() -> int:
    """Return the longest lifetime on this platform, at most a year."""
    return max(1, min(settings.SLIPWAY_TOKEN_MAX_DAYS, _LONGEST_DAYS))


def has_token(user: User) -> bool:
    """Whether the user has a token that was not revoked."""
    return ApiToken.objects.filter(user=user, revoked_at=None).exists()


def lifetimes() -> list[int]:
    """Return the days that forms offer, up to the platform's maximum."""
    return sorted({days for days in _LIFETIMES if days < max_days()} | {max_days()})


def default_days() -> int:
    return min(DEFAULT_DAYS, max_days())


def create(
    *,
    actor: User,
    name: str,
    days: int | None = None,
    scopes: Collection[str] = (Scope.READ,),
    team_slug: str = "",
    requests_per_minute: int | None = None,
) -> NewToken:
    """Create a token of the actor, for one team or all of theirs. Raises Invalid with the field, NotFound for the
    team, Forbidden for a request that was itself made with a token.
    """
    if actor.grant is not None or actor.is_service_account:
        raise Forbidden(
            "An API token cannot create tokens. Sign in with a browser instead.",
            code="browser_only",
        )
    team = teams.get_visible(actor=actor, slug=team_slug) if team_slug else None
    # A decision with this token counts as confirmed when the token was created.
    step_up.require(actor)
    with transaction.atomic():
        made = issue(
            owner=actor,
            name=name,
            days=days,
            scopes=scopes,
            team=team,
            requests_per_minute=requests_per_minute,
        )
        trail.record(
            actor=actor,
            action=CREATED,
            obj=made.row,
            label=made.row.name,
            team_slug=team_slug,
            after=describe_for_audit(made.row),
        )
    return made


def issue(
    *,
    owner: User,
    name: str,
    days: int | None,
    scopes: Collection[str],
    team: Team | None,
    made_by: User | None = None,
    requests_per_minute: int | None = None,
) -> NewToken:
    """Store a token. The caller has checked permission and writes the audit row."""
    given = checked_scopes(scopes)
    lifetime = _default_of(given) if days is None else days
    _check(name, lifetime, given)
    _check_limit(requests_per_minute)
    plain, at = _PREFIX + secrets.token_urlsafe(32), clock.now()
    row = ApiToken.objects.create(
        user=owner,
        name=name.strip(),
        prefix=plain[:12],
        digest=_digest(plain),
        scopes=" ".join(given),
        team=team,
        made_by=made_by,
        requests_per_minute=requests_per_minute,
        created_at=at,
        expires_at=at + timedelta(days=lifetime),
    )
    return NewToken(row=row, plain=plain)


def checked_scopes(scopes: Collection[str]) -> tuple[Scope, ...]:
    try:
        return token_scopes.with_read(scopes)
    except ValueError as error:
        known = ", ".join(Scope)
        raise Invalid(f"Unknown scope. Use {known}.", fields={"scopes": f"use {known}"}) from error


def _default_of(scopes: Collection[Scope]) -> int:
    return DECIDE_DAYS if Scope.DECIDE in scopes else default_days()


def _check(name: str, days: int, scopes: Collection[Scope]) -> None:
    if not name.strip():
        raise Invalid(
            "Give the token a name that says where it is used.", fields={"name": "required"}
        )
    if not 1 <= days <= max_days():
        raise Invalid(
            f"The lifetime must be 1 to {max_days()} days.", fields={"days": f"1 to {max_days()}"}
        )
    if Scope.DECIDE in scopes and days > DECIDE_DAYS:
        raise Invalid(
            f"A token with the scope decide expires after {DECIDE_DAYS} day. Choose {DECIDE_DAYS} day, or leave out the scope.",
            fields={"days": f"{DECIDE_DAYS} day with the scope decide"},
        )


def _check_limit(requests_per_minute: int | None) -> None:
    most = settings.SLIPWAY_API_REQUESTS_PER_MINUTE
    if requests_per_minute is not None and not 1 <= requests_per_minute <= most:
        raise Invalid(
            f"A token can send 1 to {most} requests a minute on this platform.",
            fields={"requests_per_minute": f"1 to {most}"},
        )


def revoke(*, actor: User, token_id: int) -> None:
    with transaction.atomic():
        row = ApiToken.objects.filter(pk=token_id, user=actor, revoked_at=None).first()
        if row is None:
            raise NotFound("The token does not exist or is already revoked.")
        ApiToken.objects.filter(pk=row.pk).update(revoked_at=clock.now())
        trail.record(actor=actor, action=REVOKED, obj=row, label=row.name)


def user_of(plain: str) -> User | None:
    """Return the active owner of a valid token with its grant, or None. Updates the last use at most once a minute."""
    at = clock.now()
    valid = ApiToken.objects.filter(expires_at__gt=at, revoked_at=None, user__is_active=True)
    row = valid.select_related("user").filter(digest=_digest(plain)).first()
    if row is None:
        return None
    if row.last_used_at is None or at - row.last_used_at > timedelta(minutes=1):
        ApiToken.objects.filter(pk=row.pk).update(last_used_at=at)
    row.user.authenticated_at = row.created_at
    row.user.grant = TokenGrant(
        token_id=row.pk,
        name=row.name,
        scopes=frozenset(Scope(scope) for scope in row.scope_names),
        team_id=row.team_id,
        expires_at=row.expires_at,
        requests_per_minute=row.requests_per_minute,
    )
    return row.user


def explain_refusal(plain: str) -> tuple[str, str]:
    """Return the code and message for a token that `user_of` refused. Who holds the token may know why."""
    row = ApiToken.objects.select_related("user").filter(digest=_digest(plain)).first()
    if row is None:
        return "token_unknown", "The token is unknown. Check that it was copied as a whole."
    new = "Ask a lead of its team for a new one" if row.user.is_service_account else _NEW
    if row.revoked_at is not None:
        return "token_revoked", f"The token “{row.name}” was revoked. {new}."
    if not row.user.is_active:
        return (
            "token_revoked",
            f"The token “{row.name}” was disabled with the account of its owner.",
        )
    day = row.expires_at.strftime("%Y-%m-%d %H:%M UTC")
    return "token_expired", f"The token “{row.name}” expired on {day}. {new}."


_NEW: Final = "Create one in the user menu under API tokens"


def list_tokens(user: User) -> list[ApiToken]:
    return list(ApiToken.objects.filter(user=user).select_related("team"))


def describe_for_audit(row: ApiToken) -> dict[str, str | int | None]:
    return {
        "scopes": row.scopes,
        "team": row.team.slug if row.team else None,
        "expires_at": row.expires_at.isoformat(),
        "requests_per_minute": row.requests_per_minute,
    }


def _digest(plain: str) -> str:
    return hashlib.sha256(plain.encode()).hexdigest()
