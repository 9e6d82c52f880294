"""Roles of a user across teams."""

from __future__ import annotations

from collections.abc import Sequence

from django.db.models import QuerySet

from portal.accounts.models import Membership, Role, Team, User

# Role and id of each team, in the order in which they were joined.
HeldRoles = Sequence[tuple[str, int]]

_HIGHEST_FIRST = (Role.LEAD, Role.MEMBER, Role.VIEWER)


def led_teams(user: User) -> QuerySet[Team]:
    """Return the teams that the user leads: all for platform admins."""
    if user.is_platform_admin:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user, memberships__role=Role.LEAD)


def list_leads(team: Team) -> list[str]:
    """List the names of the team's leads who can sign in, sorted."""
    rows = User.objects.filter(memberships__team=team, memberships__role=Role.LEAD, is_active=True)
    return sorted(user.display_name for user in rows)


def list_held_roles(user: User) -> HeldRoles:
    """Return the roles that the user holds, which every page reads."""
    memberships = Membership.objects.filter(user=user).order_by("pk")
    return list(memberships.values_list("role", "team_id"))


def is_lead(user: User) -> bool:
    """Whether the user leads a team or is a platform admin."""
    return user.is_platform_admin or leads_any(list_held_roles(user))


def leads_any(held: HeldRoles) -> bool:
    return any(role == Role.LEAD for role, _ in held)


def home_team_id(held: HeldRoles) -> int | None:
    """Return the id of the team with the highest role; among equals, the one joined first."""
    ranked = sorted(held, key=lambda row: _rank(row[0]))
    return ranked[0][1] if ranked else None


def _rank(role: str) -> int:
    return _HIGHEST_FIRST.index(Role(role))
