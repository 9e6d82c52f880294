"""The Models table."""

from __future__ import annotations

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
from portal.ui.htmx import respond
from portal.ui.lists import FilterForm, plain_input, plain_select, sortable_columns

_PER_PAGE = 25


class ModelFilterForm(FilterForm):
    sorts = tuple(SORTS)
    default_sort = "-changed"

    q = forms.CharField(
        required=False,
        max_length=200,
        widget=plain_input("Name, task or description", "Search models", kind="search"),
    )
    tag = forms.CharField(required=False, max_length=40, widget=plain_input("Tag", "Tag"))
    framework = forms.CharField(
        required=False, max_length=80, widget=plain_input("Framework", "Framework")
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Any state"), *((s.value, s.value.capitalize()) for s in VersionState)],
        widget=plain_select("State of a version"),
    )


@require_GET
@people_only
def models(request: HttpRequest, user: User) -> HttpResponse:
    form = ModelFilterForm(request)
    team = teams.current(request)
    filters = form.filters
    model_filter = ModelFilter(
        team_slug=team.slug if team else "", search=filters.pop("q", ""), **filters
    )
    rows = model_list.list_models(actor=user, filters=model_filter).order_by(*SORTS[form.order])
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    titles = {"name": "Name", "task": "Task", "changed": "Changed"}
    context: dict[str, Any] = {
        "team": team,
        "form": form,
        "page": page,
        "rows": model_list.with_joins(list(page)),
        "columns": sortable_columns(request, form.order, titles),
        "can_upload": team is not None and policy.is_allowed(user, Action.UPLOAD, team),
    }
    return respond(
        request, "registry/models.html", context, parts={"model-rows": "registry/_model_rows.html"}
    )
