"""The marks of changes on cost charts. Other apps know the changes and register a source."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from datetime import datetime

from fleet.costs.domain.change_marks import ChangeMark
from fleet.costs.domain.results import CostRow, GroupBy

# Deployments by team and name, and the period [start, end).
Source = Callable[[Collection[tuple[str, str]], datetime, datetime], Sequence[ChangeMark]]
_sources: list[Source] = []


def register(source: Source) -> None:
    """Register a source of marks. Registering it twice has no effect."""
    if source not in _sources:
        _sources.append(source)


def list_marks(
    rows: Sequence[CostRow], group_by: GroupBy, *, start: datetime, end: datetime
) -> list[ChangeMark]:
    """Return the marks of the deployments in these rows. Empty for groupings other than deployment and revision."""
    if group_by not in (GroupBy.DEPLOYMENT, GroupBy.REVISION):
        return []
    keys = {(row.key.team_slug, row.key.deployment) for row in rows if row.key.deployment}
    return [mark for source in _sources for mark in source(sorted(keys), start, end)]
