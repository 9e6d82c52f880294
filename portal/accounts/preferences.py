"""Personal preferences. Not audited, because they affect nobody else."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from portal.accounts.models import DismissedItem, Team, User
from portal.core import clock
from portal.core.errors import Invalid

THEMES = ("", "light", "dark")
# Of one person; older ones are forgotten.
MOST_DISMISSED: Final = 200
_LONGEST_KEY: Final = 80
_LONGEST_FACTS: Final = 64


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


def dismiss_item(*, actor: User, key: str, facts: str) -> None:
    """Hide an item of the actor's home page until its facts change. Raises Invalid for a name that no item has."""
    if not 0 < len(key) <= _LONGEST_KEY or len(facts) > _LONGEST_FACTS:
        raise Invalid("This item cannot be dismissed.", fields={"key": "unknown"})
    DismissedItem.objects.update_or_create(
        user=actor, key=key, defaults={"facts": facts, "at": clock.now()}
    )
    rows = DismissedItem.objects.filter(user=actor)
    oldest = list(rows.order_by("-at", "-pk").values_list("pk", flat=True)[MOST_DISMISSED:])
    if oldest:
        rows.filter(pk__in=oldest).delete()


def restore_items(*, actor: User, keys: Collection[str]) -> None:
    """Show dismissed items of the actor's home page again."""
    DismissedItem.objects.filter(user=actor, key__in=keys).delete()


def list_dismissed(user: User) -> dict[str, DismissedItem]:
    """Return what the user dismissed, by the name of the item."""
    return {row.key: row for row in DismissedItem.objects.filter(user=user)}
