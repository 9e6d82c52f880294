"""In which teams a person may do more than look."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.accounts.models import Membership, Role, Team, User

_MOST_FIRST = (Role.LEAD, Role.MEMBER, Role.VIEWER)


def led_teams(user: User) -> QuerySet[Team]:
    """Teams whose members and audit the person manages: all for platform admins."""
    if user.is_platform_admin:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user, memberships__role=Role.LEAD)


def is_lead(user: User) -> bool:
    """Leads at least one team, or all as a platform admin."""
    return user.is_platform_admin or led_teams(user).exists()


def home_team_id(user: User) -> int | None:
    """The team in which the person may do most; among equals the first by name."""
    roles = Membership.objects.filter(user=user).order_by("team__slug")
    mine = sorted(roles.values_list("role", "team_id"), key=lambda row: _rank(row[0]))
    return mine[0][1] if mine else None


def _rank(role: str) -> int:
    return _MOST_FIRST.index(Role(role))
