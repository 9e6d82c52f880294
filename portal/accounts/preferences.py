"""Personal preferences. Not audited, because they affect nobody else."""

from __future__ import annotations

from portal.accounts.models import User
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
