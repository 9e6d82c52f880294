"""The Models table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.registry.selectors import model_list
from deployments.registry.selectors.model_list import SORTS, ModelFilter
from deployments.states import VersionState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.addresses import with_query
from portal.ui.htmx import respond

_PER_PAGE = 25


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    address: str
    direction: str


class FilterForm(forms.Form):
    q = forms.CharField(required=False, max_length=200)
    tag = forms.CharField(required=False, max_length=40)
    framework = forms.CharField(required=False, max_length=80)
    state = forms.ChoiceField(
        required=False, choices=[("", "Any"), *((s.value, s.value) for s in VersionState)]
    )
    sort = forms.ChoiceField(required=False, choices=[(name, name) for name in SORTS])


@require_GET
@people_only
def models(request: HttpRequest, user: User) -> HttpResponse:
    form = FilterForm(request.GET)
    filters = form.cleaned_data if form.is_valid() else {}
    team = teams.current(request)
    sort = filters.get("sort") or "-changed"
    model_filter = ModelFilter(
        team_slug=team.slug if team else "",
        search=filters.get("q", ""),
        tag=filters.get("tag", ""),
        framework=filters.get("framework", ""),
        state=filters.get("state", ""),
    )
    rows = model_list.list_models(actor=user, filters=model_filter).order_by(*SORTS[sort])
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    context: dict[str, Any] = {
        "team": team,
        "asked": filters,
        "is_filtered": any(filters.get(name) for name in ("q", "tag", "framework", "state")),
        "states": list(VersionState),
        "page": page,
        "rows": model_list.with_joins(list(page)),
        "columns": {n: _column(request, sort, n) for n in ("name", "task", "changed")},
        "next_address": _page(request, page.number + 1) if page.has_next() else "",
        "previous_address": _page(request, page.number - 1) if page.has_previous() else "",
        "can_upload": team is not None and policy.is_allowed(user, Action.UPLOAD, team),
    }
    return respond(
        request, "registry/models.html", context, parts={"model-rows": "registry/_model_rows.html"}
    )


def _page(request: HttpRequest, number: int) -> str:
    return with_query(request, page=number)


def _column(request: HttpRequest, sort: str, name: str) -> Column:
    other = f"-{name}" if sort == name else name
    direction = {name: "ascending", f"-{name}": "descending"}.get(sort, "")
    return Column(name.capitalize(), with_query(request, sort=other, page=None), direction)
