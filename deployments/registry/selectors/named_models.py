"""Models that words of a search name. Read before the versions: with nothing of a model among the conditions,
PostgreSQL walks the documents in the order of pages and joins only what matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

from django.db.models import CharField, Q, QuerySet

from deployments.models import Model
from portal.core.compiled_queries import CompiledQuery, Parameter
from portal.core.statements.any_text import HasAnyText

# Named one by one in a query; of more, their condition is.
_MAX_IDS: Final = 500


def find(word: str) -> Sequence[int] | QuerySet[Model, Any] | None:
    """Models that have the word in their name, task, description or team; None if there are none."""
    ids = _ids([word], most=_MAX_IDS + 1)
    if len(ids) > _MAX_IDS:
        return Model.objects.filter(_has(word)).order_by().values("pk")
    return ids or None


def has_any(words: Sequence[str]) -> bool:
    """Whether there are any for one of the words."""
    return bool(words) and bool(_ids(words, most=1))


def _ids(words: Sequence[str], *, most: int) -> list[int]:
    values: dict[str, Any] = {"words": words}
    paths = [word for word in words if "/" in word]
    for number, path in enumerate(paths):
        values[f"team{number}"], _, values[f"start{number}"] = path.partition("/")
    return [pk for (pk,) in _query(len(paths), most).rows(**values)]


@lru_cache(maxsize=64)
def _query(paths: int, most: int) -> CompiledQuery[Model]:
    """Of models with any of the words or paths."""
    has = Q(HasAnyText(("name", "task", "description", "team__slug"), "words"))
    for number in range(paths):
        team, start = (Parameter(f"{part}{number}", CharField()) for part in ("team", "start"))
        has |= Q(team__slug=team, name__startswith=start)
    return CompiledQuery(lambda: Model.objects.filter(has).order_by().values_list("pk")[:most])


def _has(word: str) -> Q:
    """As `_query`."""
    has = Q(name__icontains=word) | Q(task__icontains=word)
    has |= Q(description__icontains=word) | Q(team__slug__icontains=word)
    team, slash, start = word.partition("/")
    return has | Q(team__slug=team, name__startswith=start) if slash else has
