"""The versions that a search finds, and what its result can be narrowed to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.core.paginator import Paginator
from django.http import HttpRequest

from deployments.models import ModelVersion
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.metadata import metric_direction, version_metadata
from deployments.registry.selectors import version_search
from deployments.registry.selectors.version_search import Facet, VersionFilter
from portal.accounts.models import User
from portal.ui.addresses import with_query

_PER_PAGE: Final = 25
_MAX_METRICS: Final = 3
_TITLES: Final = {
    "team": "Team",
    "state": "State",
    "format": "Format",
    "task": "Task",
    "label": "Label",
    "metric": "Sort by metric",
}


@dataclass(frozen=True, slots=True)
class VersionRow:
    version: ModelVersion
    # Empty without that metric.
    metrics: Sequence[str]
    labels: Sequence[str]


@dataclass(frozen=True, slots=True)
class FilterChoice:
    """A link that narrows the result, or takes that back if it is chosen."""

    text: str
    count: int | None
    address: str
    is_chosen: bool


def context_of(
    request: HttpRequest, user: User, filters: VersionFilter, sort: str, total: int
) -> dict[str, Any]:
    """Return the context of the `total` versions found. `sort` is `metric:NAME` or `-metric:NAME`; empty means
    newest first.
    """
    rows = version_search.search(actor=user, filters=filters).order_by("-id")
    metric = sort.rpartition(":")[2]
    if metric:
        rows = version_search.with_metric(rows, metric)
        rows = rows.order_by("-metric_value" if sort.startswith("-") else "metric_value", "-id")
    paginator = Paginator(rows, _PER_PAGE)
    # Counting 20,000 versions takes longer than reading a page of them. A few are counted now: a version that
    # was found since the total was counted would not be shown.
    if total > _PER_PAGE:
        paginator.count = total
    page = paginator.get_page(request.GET.get("page"))
    versions = list(page)
    names = _shown_metrics(versions, filters, metric)
    return {
        "page": page,
        "metric_names": names,
        "version_rows": [_row(version, names) for version in versions],
    }


def choices_of(
    request: HttpRequest, facets: Sequence[Facet], chosen: Mapping[str, str]
) -> list[tuple[str, list[FilterChoice]]]:
    """Return the choices of each facet with its title. Facets without a value are left out."""
    by_title = []
    for facet in sorted(facets, key=lambda facet: list(_TITLES).index(facet.name)):
        choose = _sort_choices if facet.name == "metric" else _choices
        choices = choose(request, facet, chosen.get(facet.name, ""))
        if choices:
            by_title.append((_TITLES[facet.name], choices))
    return by_title


def _choices(request: HttpRequest, facet: Facet, chosen: str) -> list[FilterChoice]:
    if facet.name == "team":
        return _team_choices(request, facet, chosen)
    return [
        FilterChoice(
            text=_text(facet.name, row.value),
            count=row.count,
            address=with_query(
                request, page=None, **{facet.name: None if row.value == chosen else row.value}
            ),
            is_chosen=row.value == chosen,
        )
        for row in facet.values
    ]


def _team_choices(request: HttpRequest, facet: Facet, chosen: str) -> list[FilterChoice]:
    """Return the choices of teams. A team is chosen always, as on every page, so that all of them are a choice
    as well.
    """
    if len(facet.values) < 2 and chosen:
        return []
    everything = with_query(request, page=None, team=None, teams="all")
    total = sum(row.count for row in facet.values)
    return [FilterChoice("All teams", total, everything, is_chosen=not chosen)] + [
        FilterChoice(
            row.value,
            row.count,
            with_query(request, page=None, team=row.value, teams=None),
            is_chosen=row.value == chosen,
        )
        for row in facet.values
    ]


def _sort_choices(request: HttpRequest, facet: Facet, chosen: str) -> list[FilterChoice]:
    choices = []
    for row in facet.values:
        is_lower_better = metric_direction.is_higher_better(row.value) is False
        sort = f"{'' if is_lower_better else '-'}metric:{row.value}"
        is_chosen = chosen.removeprefix("-") == f"metric:{row.value}"
        address = with_query(request, page=None, sort=None if is_chosen else sort, show="versions")
        choices.append(FilterChoice(row.value, row.count, address, is_chosen))
    return choices


def _text(facet: str, value: str) -> str:
    if facet == "format":
        return catalogue.describe(value)
    return value.capitalize() if facet == "state" else value


def _shown_metrics(
    versions: Sequence[ModelVersion], filters: VersionFilter, metric: str
) -> list[str]:
    """Return the metrics to show, in lower case: those that are sorted by or filtered by, then the first of the
    page.
    """
    conditions = (*filters.query.conditions, *filters.conditions)
    named = [name for name in (metric, *(c.metric for c in conditions)) if name]
    others = [n.lower() for n in version_metadata.metric_names(v.metadata for v in versions)]
    return list(dict.fromkeys([*named, *others]))[:_MAX_METRICS]


def _row(version: ModelVersion, names: Sequence[str]) -> VersionRow:
    metrics = version_metadata.metrics_of(version.metadata)
    values = {name.lower(): f"{value:.6g}" for name, value in metrics.items()}
    labels = version_metadata.labels_of(version.metadata).items()
    return VersionRow(
        version,
        [values.get(name, "") for name in names],
        [version_metadata.format_label(key, value) for key, value in labels],
    )
