"""Versions by words and facts, newest or oldest first: what most searches are, without translating each to SQL anew.

Other filters (labels, conditions, references, the name of a model or a format) go through version_search.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache, reduce
from operator import and_
from typing import Any, Final

from django.db import connection
from django.db.models import BigIntegerField, CharField, Q

from deployments.models import ModelVersion
from deployments.registry.selectors import listed_versions, named_models, version_search, versions
from deployments.registry.selectors.listed_versions import ListedVersion
from deployments.registry.selectors.version_search import VersionFilter
from portal.accounts.policy import Actor
from portal.accounts.visible_queries import VisibleQuery
from portal.core.compiled_queries import Parameter

_LOOKUPS: Final = {
    "team": "model__team__slug",
    "model": "model__name",
    "task": "model__task",
    "state": "state",
    "format": "format",
    "sha256": "sha256",
}


@dataclass(frozen=True, slots=True)
class FoundVersions:
    """It takes what the framework's paginator asks of a queryset: an order, a position, a slice."""

    actor: Actor
    facts: tuple[tuple[str, str], ...]
    words: tuple[str, ...]
    is_descending: bool = True
    position: int | None = None

    def order_by(self, order: str) -> FoundVersions:
        return replace(self, is_descending=order.startswith("-"))

    def filter(self, **position: str) -> FoundVersions:
        """`id__lt` or `id__gt`, as the order says."""
        (text,) = position.values()
        return replace(self, position=int(text))

    def __getitem__(self, place: slice) -> list[ListedVersion]:
        query = _query(
            tuple(name for name, _ in self.facts),
            tuple(bool(version_search.prefixes_of(word)) for word in self.words),
            (place.start, place.stop),
            is_descending=self.is_descending,
            has_position=self.position is not None,
            is_postgres=connection.vendor == "postgresql",
        )
        values: dict[str, Any] = dict(self.facts)
        for number, word in enumerate(self.words):
            values[f"word{number}"] = word
            values[f"prefixes{number}"] = version_search.prefixes_of(word)
        ids = [pk for (pk,) in query.rows(self.actor, position=self.position, **values)]
        return listed_versions.by_ids(ids)


def find(*, actor: Actor, filters: VersionFilter) -> FoundVersions | None:
    """None if the filter says more than words and facts."""
    query = filters.query
    if filters.labels or filters.conditions or query.is_about_versions:
        return None
    if any(map(_says_more, query.words)) or named_models.has_any(query.words):
        return None
    facts = ((name, str(getattr(filters, name))) for name in _LOOKUPS)
    return FoundVersions(actor, tuple(fact for fact in facts if fact[1]), query.words)


def _says_more(word: str) -> bool:
    return version_search.is_digest(word) or bool(version_search.formats_named(word))


# The plan depends on how common a word is, so it is made anew for each search: therefore only the ids are read here,
# from as few tables as can be.
@lru_cache(maxsize=256)
def _query(
    facts: tuple[str, ...],
    words: tuple[bool, ...],
    place: tuple[int, int],
    *,
    is_descending: bool,
    has_position: bool,
    is_postgres: bool,
) -> VisibleQuery[ModelVersion]:
    """`words` says of each whether it has parts that a full-text search finds."""
    conditions = [Q(**{_LOOKUPS[name]: _text(name)}) for name in facts]
    for number, has_parts in enumerate(words):
        word, prefixes = _text(f"word{number}"), _text(f"prefixes{number}")
        conditions.append(
            version_search.text_or_vector(word, prefixes)
            if has_parts and is_postgres
            else version_search.plain_text(word)
        )
    if has_position:
        compared = "id__lt" if is_descending else "id__gt"
        conditions.append(Q(**{compared: Parameter("position", BigIntegerField())}))
    matches = reduce(and_, conditions, Q())
    order = "-id" if is_descending else "id"
    return VisibleQuery(
        lambda teams: (
            versions.versions_in(teams)
            .filter(matches)
            .order_by(order)
            .values_list("pk")[place[0] : place[1]]
        ),
        keeps_plan=False,
    )


def _text(name: str) -> Parameter:
    return Parameter(name, CharField())
