"""Models that words of a search name. Read before the versions: with nothing of a model among the conditions,
PostgreSQL walks the documents in the order of pages and joins only what matches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from django.db.models import Q, QuerySet

from deployments.models import Model

# Named one by one in a query; of more, their condition is.
_MAX_IDS: Final = 500


def find(word: str) -> Sequence[int] | QuerySet[Model, Any]:
    """Find models that have the word in their name, task, description or team, or that begin with a path."""
    rows = Model.objects.filter(_has(word)).order_by()
    ids = list(rows.values_list("pk", flat=True)[: _MAX_IDS + 1])
    return rows.values("pk") if len(ids) > _MAX_IDS else ids


def _has(word: str) -> Q:
    has = Q(name__icontains=word) | Q(task__icontains=word)
    has |= Q(description__icontains=word) | Q(team__slug__icontains=word)
    team, slash, start = word.partition("/")
    return has | Q(team__slug=team, name__startswith=start) if slash else has
