"""Sets the roles that a provider grants, by claims or by groups, and takes back what it gave before."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

from portal.accounts.models import Identity, Membership, ProvisionedPerson, Team, User
from portal.accounts.oidc.providers import Provider
from portal.accounts.oidc.rules import Grant
from portal.accounts.policy import SYSTEM
from portal.accounts.teams import MEMBER_REMOVED, MEMBER_SET
from portal.audit import trail
from portal.audit.actions import register

ADMIN_GIVEN: Final = register("person.admin_given", "made a platform admin of")
ADMIN_TAKEN: Final = register("person.admin_taken", "took the platform admin role from")


def apply_roles(
    user: User, provider: Provider, granted: Grant, names: Collection[str], reason: str
) -> bool:
    """Set the granted roles; remove those that this provider gave earlier, under `names`. True if any was set.

    A role that a person gave in the portal stays, unless the provider gives one in the same team.
    """
    is_any_set = False
    teams = Team.objects.in_bulk(list(granted.roles), field_name="slug")
    rows = {
        row.team.slug: row for row in Membership.objects.filter(user=user).select_related("team")
    }
    for slug, team in sorted(teams.items()):
        role, old = granted.roles[slug], rows.get(slug)
        if old is not None and (old.role, old.provider) == (role, provider.name):
            continue
        Membership.objects.update_or_create(
            user=user, team=team, defaults={"role": role, "provider": provider.name}
        )
        _record(MEMBER_SET, user, team, old.role if old else None, role, reason)
        is_any_set = True
    for slug, row in sorted(rows.items()):
        if row.provider in names and slug not in teams:
            row.delete()
            _record(MEMBER_REMOVED, user, row.team, row.role, None, reason)
    return is_any_set


def apply_admin(
    user: User,
    givers: Sequence[Identity | ProvisionedPerson],
    *,
    is_admin: bool,
    reason: str,
) -> bool:
    """Apply the role of platform admin, which a provider takes only if it gave it. The first of `givers` remembers.
    Returns whether the role was given.
    """
    is_given = is_admin and not user.is_platform_admin
    is_taken = not is_admin and any(row.gives_platform_admin for row in givers)
    if not (is_given or is_taken):
        return False
    User.objects.filter(pk=user.pk).update(is_platform_admin=is_given)
    for index, row in enumerate(givers):
        row.gives_platform_admin = is_given and index == 0
        row.save(update_fields=["gives_platform_admin"])
    user.is_platform_admin = is_given
    trail.record(
        actor=SYSTEM,
        action=ADMIN_GIVEN if is_given else ADMIN_TAKEN,
        obj=user,
        label=user.username,
        before={"is_platform_admin": not is_given},
        after={"is_platform_admin": is_given},
        reason=reason,
    )
    return is_given


def _record(
    action: Any, user: User, team: Team, before: str | None, after: str | None, reason: str
) -> None:
    trail.record(
        actor=SYSTEM,
        action=action,
        obj=team,
        team_slug=team.slug,
        before={user.username: before},
        after={user.username: after},
        reason=reason,
    )
