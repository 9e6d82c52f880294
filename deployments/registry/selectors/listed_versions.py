"""Versions as lists of the API show them, read without their large columns and without objects of the ORM."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from django.db.models import QuerySet

from deployments.models import Alias, ModelVersion


@dataclass(slots=True)
class ListedVersion:
    """A version in a list. A field with the name of a column has the value of ModelVersion's."""

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
    alias_names: list[str] = field(kw_only=True)


_SOURCES: Final = {
    "model_name": "model__name",
    "team_slug": "model__team__slug",
    "creator": "created_by__username",
}
_COLUMNS: Final = tuple(_SOURCES.get(name, name) for name in ListedVersion.__slots__[:-1])


def columns(rows: QuerySet[ModelVersion]) -> QuerySet[ModelVersion, dict[str, Any]]:
    """Select the columns that `read` needs."""
    values: QuerySet[ModelVersion, dict[str, Any]] = rows.prefetch_related(None).values(*_COLUMNS)
    return values


def read(rows: Sequence[Mapping[str, Any]]) -> list[ListedVersion]:
    """Make versions of rows of `columns`, with the names of their aliases."""
    aliases: dict[int, list[str]] = defaultdict(list)
    of_rows = Alias.objects.filter(version__in=[row["id"] for row in rows])
    for version_id, name in of_rows.order_by("name").values_list("version_id", "name"):
        aliases[version_id].append(name)
    return [
        ListedVersion(*(row[column] for column in _COLUMNS), alias_names=aliases[row["id"]])
        for row in rows
    ]
