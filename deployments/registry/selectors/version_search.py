"""Find versions: by words, metrics, labels and facts, with counts of what could be chosen next.

PostgreSQL searches full text (stems of English words, beginnings of others) and parts of words in the
short texts; SQLite, the demo's database, parts of words only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import and_, or_
from typing import Final, TypeVar

from django.contrib.postgres.search import SearchQuery as TextQuery
from django.db import connection
from django.db.models import Count, Exists, F, Max, OuterRef, Q, QuerySet

from deployments.models import (
    Model,
    ModelVersion,
    VersionLabel,
    VersionMetric,
)
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.metadata import version_metadata
from deployments.registry.domain.metadata.search_query import (
    MetricCondition,
    SearchQuery,
    VersionReference,
)
from deployments.registry.selectors import named_models, versions
from portal.accounts import policy
from portal.accounts.policy import Actor
from portal.core.cache import recent

# Stems of English words; other words are kept as they are.
TEXT_CONFIGURATION: Final = "english"
MAX_VALUES: Final = 12
FACETS_SECONDS: Final = 30
_LOOKUPS: Final = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte", "=": "exact"}
_WORD: Final = re.compile(r"[^\W_]+")
_DIGEST: Final = re.compile(r"[0-9a-f]{7,64}")

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class VersionFilter:
    """Conditions that must all hold for a version. An empty value holds for each. `labels` are "key=value" or
    "key".
    """

    query: SearchQuery = field(default_factory=SearchQuery)
    conditions: tuple[MetricCondition, ...] = ()
    labels: tuple[str, ...] = ()
    team: str = ""
    model: str = ""
    state: str = ""
    format: str = ""
    task: str = ""
    sha256: str = ""


@dataclass(frozen=True, slots=True)
class FacetValue:
    value: str
    count: int


@dataclass(frozen=True, slots=True)
class Facet:
    """The counts of the versions that match everything except the choice of this facet itself."""

    name: str
    values: Sequence[FacetValue]


def search(*, actor: Actor, filters: VersionFilter) -> QuerySet[ModelVersion]:
    return matching(versions.list_versions(actor=actor), filters)


def with_metric(rows: QuerySet[ModelVersion, R], metric: str) -> QuerySet[ModelVersion, R]:
    """Keep the versions with the metric, and annotate its value as `metric_value`."""
    rows = rows.filter(metric_rows__name=metric.lower())
    return rows.annotate(metric_value=F("metric_rows__value"))


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of matching versions, and the facets."""

    total: int
    facets: Sequence[Facet]


def count(*, actor: Actor, filters: VersionFilter, metric: str = "") -> Counts:
    """Count what matches. It is counted again when a visible model changed, and at the latest after
    FACETS_SECONDS. With `metric`, the total is that of the versions that have it.
    """
    teams = sorted(policy.visible_teams(actor).values_list("pk", flat=True))
    changed = Model.objects.filter(team__in=teams).aggregate(at=Max("changed_at"), n=Count("pk"))
    key = ("registry-counts", teams, changed["at"], changed["n"], filters, metric)
    return recent(key, lambda: _count(teams, filters, metric), seconds=FACETS_SECONDS)


def _count(teams: Sequence[int], filters: VersionFilter, metric: str) -> Counts:
    """Count in three queries for any number of versions; the total of a metric needs one more."""
    visible = ModelVersion.objects.filter(model__team__in=teams, discarded_at=None)
    chosen = {
        "team": filters.team,
        "format": filters.format,
        "state": filters.state,
        "task": filters.task,
    }
    unchosen = replace(filters, team="", format="", state="", task="")
    counted = (
        matching(visible, unchosen)
        .order_by()
        .values_list("model__team__slug", "format", "state", "model__task")
        .annotate(Count("pk"))
    )
    groups = [(dict(zip(chosen, row[:4], strict=True)), row[4]) for row in counted]
    by_fact = [_facet(name, groups, chosen) for name in chosen]
    facets = [*by_fact, _labels(visible, filters), _metrics(visible, filters)]
    if metric:
        return Counts(with_metric(matching(visible, filters), metric).count(), facets)
    return Counts(sum(number for facts, number in groups if _has(facts, chosen)), facets)


def _has(facts: Mapping[str, str], chosen: Mapping[str, str]) -> bool:
    return all(facts[name] == value for name, value in chosen.items() if value)


def _facet(
    name: str, groups: Sequence[tuple[dict[str, str], int]], chosen: dict[str, str]
) -> Facet:
    others = {other: value for other, value in chosen.items() if other != name}
    counts: Counter[str] = Counter()
    for facts, number in groups:
        if _has(facts, others):
            counts[facts[name]] += number
    counts.pop("", None)
    return Facet(name, _most_common(counts.items()))


def _labels(visible: QuerySet[ModelVersion], filters: VersionFilter) -> Facet:
    rows = VersionLabel.objects.filter(version__in=matching(visible, filters).values("pk"))
    counted = (
        rows.values_list("key", "value").annotate(n=Count("pk")).order_by("-n", "key", "value")
    )
    values = [
        FacetValue(version_metadata.format_label(key, value), count)
        for key, value, count in counted[:MAX_VALUES]
    ]
    return Facet("label", values)


def _metrics(visible: QuerySet[ModelVersion], filters: VersionFilter) -> Facet:
    rows = VersionMetric.objects.filter(version__in=matching(visible, filters).values("pk"))
    counted = rows.values_list("name").annotate(n=Count("pk")).order_by("-n", "name")
    return Facet("metric", [FacetValue(name, count) for name, count in counted[:MAX_VALUES]])


def _most_common(counts: Iterable[tuple[str, int]]) -> list[FacetValue]:
    ordered = sorted(counts, key=lambda pair: (-pair[1], pair[0]))
    return [FacetValue(value, count) for value, count in ordered[:MAX_VALUES]]


def matching(rows: QuerySet[ModelVersion], filters: VersionFilter) -> QuerySet[ModelVersion]:
    facts = {
        "model__team__slug": filters.team,
        "model__name": filters.model,
        "model__task": filters.task,
        "state": filters.state,
        "format": filters.format,
        "sha256": filters.sha256,
    }
    rows = rows.filter(**{name: value for name, value in facts.items() if value})
    for label in filters.labels:
        key, equals, value = label.partition("=")
        rows = rows.filter(_has_label(key.strip(), value.strip() if equals else None))
    for condition in (*filters.conditions, *filters.query.conditions):
        rows = rows.filter(_meets(condition))
    for key, value in filters.query.labels:
        rows = rows.filter(_has_label(key, value))
    if filters.query.references:
        rows = rows.filter(reduce(or_, map(_is, filters.query.references)))
    if filters.query.words:
        rows = rows.filter(reduce(and_, map(_has_word, filters.query.words)))
    return rows


def _has_label(key: str, value: str | None) -> Exists:
    """Return the condition that a version has the label. None means any value."""
    labels = VersionLabel.objects.filter(version=OuterRef("pk"), key=key)
    return Exists(labels if value is None else labels.filter(value=value))


def _meets(condition: MetricCondition) -> Q | Exists:
    lookup = {f"value__{_LOOKUPS[condition.operator]}": condition.value}
    metrics = VersionMetric.objects.filter(version=OuterRef("pk"), name=condition.metric)
    meets = Exists(metrics.filter(**lookup))
    if condition.operator != "=":
        return meets
    # epochs=30 may be a label as well.
    return Q(meets) | Q(_has_label(condition.metric, f"{condition.value:g}"))


def _is(reference: VersionReference) -> Q:
    exactly = Q(number=reference.number)
    if reference.model:
        exactly &= Q(model__name=reference.model)
    return exactly & Q(model__team__slug=reference.team) if reference.team else exactly


def _has_word(word: str) -> Q:
    matches = _has_text(word) | Q(model__in=named_models.find(word))
    kinds = [kind.key for kind in catalogue.FORMATS if word in kind.name.lower()]
    if kinds:
        matches |= Q(format__in=kinds)
    return matches | Q(sha256__startswith=word) if _DIGEST.fullmatch(word) else matches


def _has_text(word: str) -> Q:
    """Find the word in the texts of versions themselves."""
    matches = Q(document__text__contains=word)
    # What to_tsquery takes for the parts of the word.
    prefixes = " & ".join(f"{part}:*" for part in _WORD.findall(word))
    if not prefixes or connection.vendor != "postgresql":
        return matches
    query = TextQuery(prefixes, config=TEXT_CONFIGURATION, search_type="raw")
    return matches | Q(document__vector=query)
