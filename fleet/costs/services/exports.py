"""The ledger as a whole leaves the portal: an event of the audit trail."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime

from portal.accounts.models import User
from portal.audit import reads


def record(
    *, actor: User, team_slugs: Collection[str] | None, start: datetime, end: datetime
) -> None:
    """Call before the first row is sent. `team_slugs` None: all teams."""
    slugs = None if team_slugs is None else sorted(team_slugs)
    of = "all teams" if slugs is None else ", ".join(slugs) or "no team"
    reads.record(
        actor=actor,
        action=reads.LEDGER_EXPORTED,
        obj=actor,
        label=f"{start:%Y-%m-%d} to {end:%Y-%m-%d}, {of}",
        team_slug=slugs[0] if slugs and len(slugs) == 1 else "",
    )
