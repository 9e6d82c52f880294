"""Roles of a user across teams."""

from __future__ import annotations

from typing import Final

from django.db.models import BigIntegerField, QuerySet

from portal.accounts.models import Membership, Role, Team, User
from portal.core.compiled_queries import CompiledQuery, Parameter

_HIGHEST_FIRST = (Role.LEAD, Role.MEMBER, Role.VIEWER)
# Every page reads them.
_ROLES: Final = CompiledQuery(
    lambda: (
        Membership.objects.filter(user=Parameter("user", BigIntegerField()))
        .order_by("team__slug")
        .values_list("role", "team_id")
    )
)


def led_teams(user: User) -> QuerySet[Team]:
    """Teams that the user leads: all for platform admins."""
    if user.is_platform_admin:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user, memberships__role=Role.LEAD)


def is_lead(user: User) -> bool:
    """Whether the user leads a team or is a platform admin."""
    if user.is_platform_admin:
        return True
    return any(role == Role.LEAD for role, _ in _ROLES.rows(user=user.pk))


def home_team_id(user: User) -> int | None:
    """The team in which the user has the highest role; the first by name among equals."""
    ranked = sorted(_ROLES.rows(user=user.pk), key=lambda row: _rank(row[0]))
    return ranked[0][1] if ranked else None


def _rank(role: str) -> int:
    return _HIGHEST_FIRST.index(Role(role))
