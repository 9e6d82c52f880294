"""Models and versions: one search, two tables."""

from __future__ import annotations

import re
from typing import Any, Final

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.metadata import search_query
from deployments.registry.selectors import model_list, version_search
from deployments.registry.selectors.model_list import SORTS, ModelFilter
from deployments.registry.selectors.version_search import VersionFilter
from deployments.registry.web import version_results
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.addresses import with_query
from portal.ui.htmx import respond
from portal.ui.lists import FilterForm, plain_input, sortable_columns

_PER_PAGE: Final = 25
_METRIC_SORT: Final = re.compile(r"-?metric:[a-z][\w.@/%-]{0,79}", re.ASCII)
_CHOSEN: Final = ("state", "format", "task", "label")


class ModelFilterForm(FilterForm):
    sorts = tuple(SORTS)
    default_sort = "-changed"

    q = forms.CharField(
        required=False,
        max_length=200,
        widget=plain_input(
            "int8 detector, map>0.5, detector:3, vision/detector", "Search models", kind="search"
        ),
    )
    show = forms.ChoiceField(
        required=False,
        choices=[("models", "models"), ("versions", "versions")],
        widget=forms.HiddenInput,
    )
    teams = forms.ChoiceField(required=False, choices=[("all", "all")], widget=forms.HiddenInput)
    state = forms.ChoiceField(
        required=False,
        choices=[(state.value, state.value) for state in VersionState],
        widget=forms.HiddenInput,
    )
    format = forms.ChoiceField(
        required=False,
        choices=[(kind.key, kind.name) for kind in catalogue.FORMATS],
        widget=forms.HiddenInput,
    )
    task = forms.CharField(required=False, max_length=60, widget=forms.HiddenInput)
    label = forms.CharField(required=False, max_length=264, widget=forms.HiddenInput)

    @property
    def metric_sort(self) -> str:
        """The order by a metric: `metric:NAME`, or `-metric:NAME` for the largest first. Empty for another
        order.
        """
        sort = self.data.get("sort", "")
        return sort if _METRIC_SORT.fullmatch(sort) else ""

    def text(self, name: str) -> str:
        return str(self.cleaned_data.get(name) or "")


@require_GET
@people_only
def models(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    form = ModelFilterForm(request)
    filters = _filters(form, team)
    metric = form.metric_sort.rpartition(":")[2]
    counts = version_search.count(actor=user, filters=filters, metric=metric)
    show, table = _table(request, user, form, filters, counts.total)
    chosen = {name: form.text(name) for name in _CHOSEN}
    context: dict[str, Any] = {
        "team": owner if filters.team else None,
        "owner": owner,
        "form": form,
        "show": show,
        "tables": [
            (name, name.capitalize(), with_query(request, show=name, page=None, sort=None))
            for name in ("models", "versions")
        ],
        "choices": version_results.choices_of(
            request, counts.facets, {**chosen, "team": filters.team, "metric": form.metric_sort}
        ),
        "can_upload": policy.is_allowed(user, Action.UPLOAD, owner),
        **table,
    }
    return respond(
        request, "registry/models.html", context, parts={"results": "registry/_results.html"}
    )


def _filters(form: ModelFilterForm, team: str) -> VersionFilter:
    """Read the filters. They are limited to the team, unless all are chosen or the search names one."""
    query = search_query.parse(form.text("q"))
    is_everywhere = form.text("teams") == "all" or any(r.team for r in query.references)
    return VersionFilter(
        query=query,
        labels=(form.text("label"),) if form.text("label") else (),
        team="" if is_everywhere else team,
        state=form.text("state"),
        format=form.text("format"),
        task=form.text("task"),
    )


def _table(
    request: HttpRequest, user: User, form: ModelFilterForm, filters: VersionFilter, total: int
) -> tuple[str, dict[str, Any]]:
    """Choose the table to show. If none is chosen, it is that of versions where the search says more than a
    model can answer, and where no model matches its words.
    """
    is_narrowed = filters.query.is_about_versions or filters.labels or filters.format
    is_narrowed = is_narrowed or filters.state or form.metric_sort
    show = form.text("show") or ("versions" if is_narrowed else "models")
    if show == "models":
        context = _models_context(request, user, form, filters)
        if context["rows"] or form.text("show") or not filters.query.words:
            return show, context
    return "versions", version_results.context_of(request, user, filters, form.metric_sort, total)


def _models_context(
    request: HttpRequest, user: User, form: ModelFilterForm, filters: VersionFilter
) -> dict[str, Any]:
    model_filter = ModelFilter(
        team_slug=filters.team,
        search=form.text("q"),
        task=filters.task,
        label=filters.labels,
        state=filters.state,
        format=filters.format,
    )
    rows = model_list.list_models(actor=user, filters=model_filter).order_by(*SORTS[form.order])
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    titles = {"name": "Name", "task": "Task", "changed": "Changed"}
    return {
        "page": page,
        "rows": model_list.with_joins(list(page)),
        "columns": sortable_columns(request, form.order, titles),
    }
