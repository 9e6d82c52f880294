"""Versions as lists of the API show them, read without their large columns and without objects of the ORM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django.db.models import BigIntegerField, QuerySet

from deployments.models import Alias, Model, ModelVersion
from portal.core.compiled_queries import CompiledQuery, Parameter
from portal.core.kept_plans import kept_plans


@dataclass(slots=True)
class ListedVersion:
    """What has the name of a column is that of ModelVersion."""

    id: int
    number: int
    state: str
    state_reason: str
    deadline_at: datetime | None
    source_uri: str
    filename: str
    format: str
    size_bytes: int | None
    declared_size_bytes: int
    sha256: str
    bucket: str
    upload_prefix: str
    repository_prefix: str
    metadata: dict[str, Any]
    checks: list[dict[str, Any]]
    vram_estimate_mib: int | None
    declared: dict[str, Any]
    created_at: datetime
    ready_at: datetime | None
    model_name: str
    team_slug: str
    creator: str
    alias_names: list[str] = field(default_factory=list)


_SOURCES: Final = {
    "model_name": "model__name",
    "team_slug": "model__team__slug",
    "creator": "created_by__username",
}
_NAMES: Final = tuple(name for name in ListedVersion.__slots__ if name != "alias_names")
COLUMNS: Final = tuple(_SOURCES.get(name, name) for name in _NAMES)


def columns(rows: QuerySet[ModelVersion]) -> QuerySet[ModelVersion, dict[str, Any]]:
    """The columns that `read` needs and those that were added to the rows, which order pages."""
    values: QuerySet[ModelVersion, dict[str, Any]] = rows.prefetch_related(None).values(
        *COLUMNS, *rows.query.annotations
    )
    return values


def read(rows: Sequence[Mapping[str, Any]]) -> list[ListedVersion]:
    """Rows of `columns`, in one more query for all aliases."""
    return from_rows([tuple(row[column] for column in COLUMNS) for row in rows])


def from_rows(rows: Sequence[Sequence[Any]]) -> list[ListedVersion]:
    """Rows of COLUMNS, as `read`."""
    listed = [ListedVersion(*row) for row in rows]
    aliases = Alias.objects.filter(version__in=[version.id for version in listed])
    with kept_plans():
        names = list(aliases.order_by("name").values_list("version_id", "name"))
    return _with_aliases(listed, names)


@dataclass(frozen=True, slots=True)
class VersionsOfModel:
    """Versions of a model that the caller may see, read page by page with compiled queries.

    It takes what the framework's paginator asks of a queryset: an order, a position, a slice.
    """

    model: Model
    is_descending: bool = True
    position: int | None = None

    def order_by(self, order: str) -> VersionsOfModel:
        return replace(self, is_descending=order.startswith("-"))

    def filter(self, **position: str) -> VersionsOfModel:
        """`id__lt` or `id__gt`, as the order says."""
        (text,) = position.values()
        return replace(self, position=int(text))

    def __getitem__(self, place: slice) -> list[ListedVersion]:
        position = self.position
        if position is None:
            position = _AFTER_ALL if self.is_descending else 0
        page = _page(place.start, place.stop, is_descending=self.is_descending)
        rows = page.rows(model=self.model.pk, position=position)
        listed = [ListedVersion(*row) for row in rows]
        return _with_aliases(listed, _ALIASES.rows(model=self.model.pk))


_AFTER_ALL: Final = 2**63 - 1
_MODEL: Final = Parameter("model", BigIntegerField())
_POSITION: Final = Parameter("position", BigIntegerField())
_ALIASES: Final = CompiledQuery(
    lambda: Alias.objects.filter(model=_MODEL).order_by("name").values_list("version_id", "name")
)


@lru_cache(maxsize=256)
def _page(start: int, stop: int, *, is_descending: bool) -> CompiledQuery[ModelVersion]:
    limit = {"id__lt": _POSITION} if is_descending else {"id__gt": _POSITION}
    rows = ModelVersion.objects.filter(model=_MODEL, discarded_at=None, **limit)
    ordered = rows.order_by("-id" if is_descending else "id").values_list(*COLUMNS)
    return CompiledQuery(lambda: ordered[start:stop])


def _with_aliases(
    listed: list[ListedVersion], aliases: Sequence[tuple[int, str]]
) -> list[ListedVersion]:
    names = defaultdict(list)
    for version_id, name in aliases:
        names[version_id].append(name)
    for version in listed:
        version.alias_names = names[version.id]
    return listed
