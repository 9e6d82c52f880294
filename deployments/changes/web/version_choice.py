"""The versions that a new deployment may serve: a team has thousands, so some are shown and all are found."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_
from typing import Final

from django.db.models import Q, QuerySet, prefetch_related_objects

from deployments.models import ModelVersion
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.metadata import search_query
from deployments.registry.selectors import version_search, versions
from deployments.registry.selectors.version_search import VersionFilter
from portal.accounts.models import Team, User
from portal.ui import formats

_SHOWN: Final = 20
_LONGEST_QUERY: Final = 200
_LONGEST_ID: Final = 18


@dataclass(frozen=True, slots=True)
class OfferedVersion:
    pk: int
    label: str
    # What tells it from others: aliases, format and size, accuracy.
    facts: Sequence[str]


@dataclass(frozen=True, slots=True)
class VersionOffer:
    """An offer of versions: the newest that match, of `count` in all, and before them the chosen one."""

    query: str
    rows: Sequence[OfferedVersion]
    count: int

    @property
    def has_more(self) -> bool:
        return self.count > len(self.rows)


def offer(*, user: User, team: Team, query: str, chosen: ModelVersion | None) -> VersionOffer:
    """Offer versions that match `query`, which is as on the Models page."""
    query = query[:_LONGEST_QUERY].strip()
    rows = _ready(user, team)
    if query:
        rows = version_search.matching(rows, VersionFilter(query=search_query.parse(query)))
    newest = list(rows.order_by("-pk")[:_SHOWN])
    count = len(newest) if len(newest) < _SHOWN else rows.count()
    if chosen is not None and chosen not in newest:
        newest = [chosen, *newest]
        count += bool(query)
    prefetch_related_objects(newest, "aliases")
    return VersionOffer(query, [_describe(version) for version in newest], count)


def find(*, user: User, team: Team, version_id: str) -> ModelVersion | None:
    """Return the chosen version, if the team may deploy it."""
    if not version_id.isascii() or not version_id.isdecimal() or len(version_id) > _LONGEST_ID:
        return None
    ready = versions.list_ready_versions(actor=user, team_slug=team.slug)
    return ready.filter(pk=int(version_id)).order_by().first()


def find_only(*, user: User, team: Team) -> ModelVersion | None:
    """Return the version of a team that has just one. None if it has more or none."""
    both = list(_ready(user, team).order_by()[:2])
    return both[0] if len(both) == 1 else None


def has_any(*, user: User, team: Team) -> bool:
    return _ready(user, team).exists()


def addable_labels(*, user: User, team: Team, query: str, beside: ModelVersion | None) -> list[str]:
    """Return the labels of versions that contain the text, or of the newest: additional models of one Triton."""
    name, _, number = query[:_LONGEST_QUERY].strip().replace("\x00", "").partition(":")
    rows = _addable(user, team, beside)
    if name:
        rows = rows.filter(model__name__icontains=name)
    if number.isascii() and number.isdecimal() and len(number) < 10:
        rows = rows.filter(number=int(number))
    return [version.label for version in rows.order_by("-pk")[:_SHOWN]]


def known_labels(
    *, user: User, team: Team, labels: Collection[str], beside: ModelVersion | None
) -> list[str]:
    """Return those of the labels that an additional model can have."""
    pairs = [label.rpartition(":") for label in labels]
    exact = [
        Q(model__name=name, number=int(number))
        for name, _, number in pairs
        if number.isascii() and number.isdecimal() and len(number) < 10 and "\x00" not in name
    ]
    if not exact:
        return []
    rows = _addable(user, team, beside).filter(reduce(or_, exact))
    found = {version.label for version in rows.order_by()}
    return [label for label in labels if label in found]


def _describe(version: ModelVersion) -> OfferedVersion:
    facts = [alias.name for alias in version.aliases.all()]
    if version.source_uri:
        facts.append(version.source_uri)
    else:
        size = None if version.size_bytes is None else formats.filesize(version.size_bytes)
        facts += [fact for fact in (catalogue.describe(version.format), size) if fact]
    metrics = version.metadata.get("metrics")
    accuracy = metrics.get("accuracy") if isinstance(metrics, dict) else None
    if accuracy is not None:
        facts.append(f"accuracy {accuracy}")
    return OfferedVersion(version.pk, version.label, facts)


def _ready(user: User, team: Team) -> QuerySet[ModelVersion]:
    rows = versions.list_ready_versions(actor=user, team_slug=team.slug)
    return rows.defer("config_pbtxt", "readme", "signature", "scan")


def _addable(user: User, team: Team, beside: ModelVersion | None) -> QuerySet[ModelVersion]:
    """Return versions with a file that Triton loads, but not of the model beside it, which Triton serves only once."""
    rows = _ready(user, team).filter(source_uri="")
    if beside is not None:
        rows = rows.exclude(model_id=beside.model_id)
    others = [kind.key for kind in catalogue.FORMATS if not catalogue.is_for_triton(kind.key)]
    return rows.exclude(format__in=others)
