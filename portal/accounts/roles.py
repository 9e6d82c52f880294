"""Roles of a user across teams."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.accounts.models import Membership, Role, Team, User

_HIGHEST_FIRST = (Role.LEAD, Role.MEMBER, Role.VIEWER)


def led_teams(user: User) -> QuerySet[Team]:
    """Teams that the user leads: all for platform admins."""
    if user.is_platform_admin:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user, memberships__role=Role.LEAD)


def is_lead(user: User) -> bool:
    """Whether the user leads a team or is a platform admin."""
    return user.is_platform_admin or led_teams(user).exists()


def home_team_id(user: User) -> int | None:
    """The team in which the user has the highest role; the first by name among equals."""
    roles = Membership.objects.filter(user=user).order_by("team__slug")
    ranked = sorted(roles.values_list("role", "team_id"), key=lambda row: _rank(row[0]))
    return ranked[0][1] if ranked else None


def _rank(role: str) -> int:
    return _HIGHEST_FIRST.index(Role(role))
