"""Which rows of a cost table have a page to link to. Other apps know: they register how to find out."""

from __future__ import annotations

from collections.abc import Callable, Collection

from fleet.costs.domain.results import CostTable, GroupBy, GroupKey

# Of these teams and names, those that exist.
Finder = Callable[[Collection[tuple[str, str]]], set[tuple[str, str]]]
_finders: dict[GroupBy, Finder] = {}


def register(group_by: GroupBy, finder: Finder) -> None:
    _finders[group_by] = finder


def without_page(table: CostTable, group_by: GroupBy) -> frozenset[GroupKey]:
    """Return the groups that have no page. Only the demo has any: it makes up deployments and models that never
    existed.
    """
    find = _finders.get(group_by)
    if find is None or not table.spend.has_demo_data:
        return frozenset()
    names = {row.key: name for row in table.rows if (name := _name_of(row.key, group_by))}
    existing = find(sorted(set(names.values())))
    return frozenset(key for key, name in names.items() if name not in existing)


def _name_of(key: GroupKey, group_by: GroupBy) -> tuple[str, str] | None:
    """Return the team and name of the page. None for batch jobs and pipelines, whose ledger names start with their
    kind.
    """
    name = key.model.removeprefix(f"{key.team_slug}/")
    if group_by is not GroupBy.MODEL:
        name = "" if "/" in key.deployment else key.deployment
    return (key.team_slug, name) if key.team_slug and name else None
