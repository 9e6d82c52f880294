"""Service accounts of a team, for CI: members of the team that upload and request, and never decide.

A service account is a user without a password who never signs in. Its name has a colon, which no person's
name can have.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import IntegrityError, transaction

from portal.accounts import policy, tokens
from portal.accounts.local import step_up
from portal.accounts.models import ApiToken, Membership, Role, Team, User
from portal.accounts.policy import Action
from portal.accounts.scopes import OF_SERVICE_ACCOUNTS, Scope
from portal.accounts.tokens import NewToken
from portal.audit import trail
from portal.audit.actions import register
from portal.core import clock
from portal.core.errors import Conflict, Invalid, NotFound

CREATED: Final = register("service_account.created", "created the service account")
ROTATED: Final = register("service_account.rotated", "rotated the token of the service account")
REVOKED: Final = register("service_account.revoked", "revoked the service account")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,30}[a-z0-9])?")
# Hours for which the old token keeps working after the new one is made.
OVERLAPS: Final = (0, 1, 24, 168)


@dataclass(frozen=True, slots=True)
class ServiceAccount:
    """A service account with its tokens. `tokens` are those that work now, the newest first; empty for a revoked or
    expired account.
    """

    user: User
    newest: ApiToken
    tokens: Sequence[ApiToken]
    last_used_at: datetime | None

    @property
    def name(self) -> str:
        return self.user.username.partition(":")[2]

    @property
    def known_to(self) -> list[str]:
        """The deactivated people who were shown a token that still works."""
        makers = [row.made_by for row in self.tokens if row.made_by and not row.made_by.is_active]
        return sorted({maker.username for maker in makers})


def create(
    *,
    actor: User,
    team: Team,
    name: str,
    scopes: Collection[str] = (Scope.READ,),
    days: int | None = None,
    requests_per_minute: int | None = None,
) -> NewToken:
    """Create an account and its first token. Raises Invalid with the field, Conflict for a name that was used
    before.
    """
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    _check(name, scopes)
    username = f"{team.slug}:{name}"
    try:
        with transaction.atomic():
            user = User(username=username, service_team=team, date_joined=clock.now())
            user.set_unusable_password()
            user.save()
            Membership.objects.create(user=user, team=team, role=Role.MEMBER)
            made = tokens.issue(
                owner=user,
                name=username,
                days=days,
                scopes=scopes,
                team=team,
                made_by=actor,
                requests_per_minute=requests_per_minute,
            )
            trail.record(
                actor=actor,
                action=CREATED,
                obj=user,
                label=username,
                team_slug=team.slug,
                after=tokens.describe_for_audit(made.row),
            )
    except IntegrityError as error:
        raise Conflict(
            f"{team.slug} has or had a service account {name}. Choose another name, so that the audit trail "
            "tells them apart.",
            code="name_taken",
        ) from error
    return made


def _check(name: str, scopes: Collection[str]) -> None:
    if not _NAME.fullmatch(name):
        raise Invalid(
            "Enter a name of lowercase letters, digits and '-', for example ci.",
            fields={"name": "lowercase letters, digits and '-', at most 32"},
        )
    if Scope.DECIDE in tokens.checked_scopes(scopes):
        raise Invalid(
            "A service account never decides. Leave out the scope decide.",
            fields={"scopes": f"use {', '.join(OF_SERVICE_ACCOUNTS)}"},
        )


def rotate(*, actor: User, team: Team, name: str, token_id: int, overlap_hours: int) -> NewToken:
    """Create a new token with the same scopes and lifetime; the others end after the overlap.

    `token_id` is the newest token that the actor saw: raises Conflict if another rotation came first.
    """
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    step_up.require(actor)
    if overlap_hours not in OVERLAPS:
        hours = ", ".join(map(str, OVERLAPS))
        raise Invalid(
            f"The old token can work for {hours} more hours.", fields={"overlap": f"use {hours}"}
        )
    at = clock.now()
    with transaction.atomic():
        user = _active(team, name)
        newest = user.api_tokens.order_by("-id")[0]
        if newest.pk != token_id:
            raise Conflict(
                f"The token of {user.username} has just been rotated. Reload the page.",
                code="rotated_already",
            )
        lifetime = min((newest.expires_at - newest.created_at).days, tokens.max_days())
        old = user.api_tokens.filter(revoked_at=None, expires_at__gt=at)
        end = at + timedelta(hours=overlap_hours)
        if overlap_hours:
            old.filter(expires_at__gt=end).update(expires_at=end)
        else:
            old.update(revoked_at=at)
        made = tokens.issue(
            owner=user,
            name=user.username,
            days=lifetime,
            scopes=newest.scope_names,
            team=team,
            made_by=actor,
            requests_per_minute=_kept_limit(newest),
        )
        trail.record(
            actor=actor,
            action=ROTATED,
            obj=user,
            label=user.username,
            team_slug=team.slug,
            after={**tokens.describe_for_audit(made.row), "overlap_hours": overlap_hours},
        )
    return made


def revoke(*, actor: User, team: Team, name: str) -> None:
    """End the account and its tokens at once, for good. What it requested stays under its name."""
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    with transaction.atomic():
        user = _active(team, name)
        User.objects.filter(pk=user.pk).update(is_active=False)
        ended = user.api_tokens.filter(revoked_at=None).update(revoked_at=clock.now())
        trail.record(
            actor=actor,
            action=REVOKED,
            obj=user,
            label=user.username,
            team_slug=team.slug,
            after={"tokens": ended},
        )


def list_service_accounts(*, actor: User, team: Team) -> list[ServiceAccount]:
    """List the service accounts by name, active ones first. Requires the right to manage the team's members."""
    policy.require(actor, Action.MANAGE_MEMBERS, team)
    rows = team.service_accounts.prefetch_related("api_tokens__made_by", "api_tokens__team")
    rows = rows.order_by("-is_active", "username")
    return [_described(user) for user in rows]


def _kept_limit(row: ApiToken) -> int | None:
    """The platform may allow fewer by now."""
    limit = row.requests_per_minute
    return min(limit, settings.SLIPWAY_API_REQUESTS_PER_MINUTE) if limit else None


def _described(user: User) -> ServiceAccount:
    all_of_it = sorted(user.api_tokens.all(), key=lambda row: -row.pk)
    used = [row.last_used_at for row in all_of_it if row.last_used_at]
    working = [row for row in all_of_it if row.revoked_at is None and not row.is_expired]
    return ServiceAccount(
        user=user,
        newest=all_of_it[0],
        tokens=working if user.is_active else (),
        last_used_at=max(used, default=None),
    )


def _active(team: Team, name: str) -> User:
    """Locked, so that two rotations come one after the other."""
    rows = User.objects.select_for_update().filter(service_team=team, is_active=True)
    user = rows.filter(username=f"{team.slug}:{name}").first() if "\0" not in name else None
    if user is None:
        raise NotFound(f"{team.slug} has no active service account {name}.")
    return user
