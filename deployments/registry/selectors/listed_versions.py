"""Versions as lists of the API show them, read without their large columns and without objects of the ORM."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final

from django.db.models import BigIntegerField, Func, OuterRef, QuerySet, Subquery, TextField

from deployments.models import Alias, Model, ModelVersion
from portal.core.compiled_queries import CompiledQuery, IsAmong, Parameter


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
    # With spaces between them, which no name has; None if there are none.
    joined_aliases: str | None

    @property
    def alias_names(self) -> list[str]:
        return sorted(self.joined_aliases.split()) if self.joined_aliases else []


_SOURCES: Final = {
    "model_name": "model__name",
    "team_slug": "model__team__slug",
    "creator": "created_by__username",
}
_COLUMNS: Final = tuple(_SOURCES.get(name, name) for name in ListedVersion.__slots__[:-1])


def columns(rows: QuerySet[ModelVersion]) -> QuerySet[ModelVersion, dict[str, Any]]:
    """The columns that `read` needs and those that were added to the rows, which order pages."""
    values: QuerySet[ModelVersion, dict[str, Any]] = rows.prefetch_related(None).values(
        *_COLUMNS, *rows.query.annotations, joined_aliases=_joined_aliases()
    )
    return values


def read(rows: Sequence[Mapping[str, Any]]) -> list[ListedVersion]:
    """Rows of `columns`."""
    names = (*_COLUMNS, "joined_aliases")
    return [ListedVersion(*(row[name] for name in names)) for row in rows]


def by_ids(ids: Sequence[int]) -> list[ListedVersion]:
    """In the order of the ids, which the caller may see. One statement, whose plan is kept."""
    listed = {row[0]: ListedVersion(*row) for row in _BY_IDS.rows(ids=ids)} if ids else {}
    return [listed[pk] for pk in ids if pk in listed]


class _Joined(Func):
    """The texts of all rows, with a space between them. No aggregate of the ORM, which would group the rows."""

    function = "STRING_AGG"
    template = "%(function)s(%(expressions)s, ' ')"
    output_field = TextField()

    def as_sqlite(self, compiler: Any, connection: Any, **_: Any) -> Any:
        return self.as_sql(compiler, connection, function="GROUP_CONCAT")


def _joined_aliases() -> Subquery:
    names = Alias.objects.filter(version=OuterRef("pk")).order_by()
    return Subquery(names.annotate(joined=_Joined("name")).values("joined"))


def _values(rows: QuerySet[ModelVersion]) -> QuerySet[ModelVersion, tuple[Any, ...]]:
    return rows.values_list(*_COLUMNS, _joined_aliases())


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
        return [ListedVersion(*row) for row in rows]


_AFTER_ALL: Final = 2**63 - 1
_MODEL: Final = Parameter("model", BigIntegerField())
_POSITION: Final = Parameter("position", BigIntegerField())
_BY_IDS: Final = CompiledQuery(
    lambda: _values(ModelVersion.objects.filter(IsAmong("pk", "ids")).order_by())
)


@lru_cache(maxsize=256)
def _page(start: int, stop: int, *, is_descending: bool) -> CompiledQuery[ModelVersion]:
    limit = {"id__lt": _POSITION} if is_descending else {"id__gt": _POSITION}
    rows = ModelVersion.objects.filter(model=_MODEL, discarded_at=None, **limit)
    ordered = _values(rows.order_by("-id" if is_descending else "id"))
    return CompiledQuery(lambda: ordered[start:stop])
