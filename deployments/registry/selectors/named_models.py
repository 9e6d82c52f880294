"""Models that words of a search name. Read before the versions: with nothing of a model among the conditions,
PostgreSQL walks the documents in the order of pages and joins only what matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, reduce
from operator import or_
from typing import Any, Final

from django.db.models import CharField, Q, QuerySet

from deployments.models import Model
from portal.core.compiled_queries import CompiledQuery, Parameter

# Named one by one in a query; of more, their condition is.
_MAX_IDS: Final = 500


def find(word: str) -> Sequence[int] | QuerySet[Model, Any] | None:
    """Models that have the word in their name, task, description or team; None if there are none."""
    query = _query((_is_path(word),), _MAX_IDS + 1)
    ids = [pk for (pk,) in query.rows(**_values(0, word))]
    if len(ids) > _MAX_IDS:
        return _models(_has(word, *(_parts(word) if _is_path(word) else ()))).values("pk")
    return ids or None


def has_any(words: Sequence[str]) -> bool:
    """Whether there are any for one of the words."""
    values: dict[str, str] = {}
    for number, word in enumerate(words):
        values |= _values(number, word)
    return bool(words) and bool(_query(tuple(map(_is_path, words)), 1).rows(**values))


@lru_cache(maxsize=64)
def _query(are_paths: tuple[bool, ...], most: int) -> CompiledQuery[Model]:
    """Of one word for each of `are_paths`, any of which a model has."""
    words = [
        _has(*(Parameter(name, CharField()) for name in _values(number, "/" if is_path else "")))
        for number, is_path in enumerate(are_paths)
    ]
    return CompiledQuery(lambda: _models(reduce(or_, words)).values_list("pk")[:most])


def _values(number: int, word: str) -> dict[str, str]:
    values = {f"word{number}": word}
    if _is_path(word):
        values[f"team{number}"], values[f"start{number}"] = _parts(word)
    return values


def _is_path(word: str) -> bool:
    return "/" in word


def _parts(word: str) -> tuple[str, str]:
    team, _, name = word.partition("/")
    return team, name


def _has(word: Any, team: Any = None, start: Any = None) -> Q:
    has = Q(name__icontains=word) | Q(task__icontains=word)
    has |= Q(description__icontains=word) | Q(team__slug__icontains=word)
    return has if team is None else has | Q(team__slug=team, name__startswith=start)


def _models(condition: Q) -> QuerySet[Model]:
    return Model.objects.filter(condition).order_by()
