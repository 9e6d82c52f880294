"""Personal preferences. Not audited, because they affect nobody else."""

from __future__ import annotations

from portal.accounts.models import Team, User
from portal.core.errors import Invalid

THEMES = ("", "light", "dark")


def checked_theme(theme: str) -> str:
    """Raises Invalid for an unknown theme; empty follows the system."""
    if theme not in THEMES:
        raise Invalid(
            "The theme must be light, dark, or empty to follow the system.",
            fields={"theme": "unknown"},
        )
    return theme


def set_theme(*, actor: User, theme: str) -> None:
    User.objects.filter(pk=actor.pk).update(theme=checked_theme(theme))


def set_last_team(actor: User, team: Team) -> None:
    """Remember the team whose page the user opened."""
    if actor.last_team_id != team.pk:
        User.objects.filter(pk=actor.pk).update(last_team=team)
