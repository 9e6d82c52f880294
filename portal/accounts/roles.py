"""In which teams a person may do more than look."""

from __future__ import annotations

from django.db.models import QuerySet

from portal.accounts.models import Role, Team, User


def led_teams(user: User) -> QuerySet[Team]:
    """Teams whose members and audit the person manages: all for platform admins."""
    if user.is_platform_admin:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user, memberships__role=Role.LEAD)


def is_lead(user: User) -> bool:
    """Leads at least one team, or all as a platform admin."""
    return user.is_platform_admin or led_teams(user).exists()
