"""The deployments of a team."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.changes.selectors import form_drafts
from deployments.pages.selectors import deployment_list, deployment_rows
from deployments.states import DeploymentState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import is_partial, respond
from portal.ui.lists import FilterForm, plain_input, plain_select, sortable_columns

_PER_PAGE = 25
_STATES = [state.value for state in DeploymentState if state != DeploymentState.RETIRED]


class DeploymentFilterForm(FilterForm):
    sorts = tuple(deployment_list.SORTS)
    default_sort = "name"

    q = forms.CharField(
        required=False,
        max_length=80,
        widget=plain_input("Name or model", "Search by name or model", kind="search"),
    )
    state = forms.ChoiceField(
        required=False,
        choices=[("", "Any status"), *((state, state.capitalize()) for state in _STATES)],
        widget=plain_select("Status"),
    )
    cluster = forms.CharField(required=False, max_length=40, widget=forms.HiddenInput)


@require_GET
@people_only
def deployments(request: HttpRequest, user: User, team: str) -> HttpResponse:
    owner = teams.get_visible(request, team)
    form = DeploymentFilterForm(request)
    rows = deployment_list.list_deployments(
        actor=user, team_slug=team, order=form.order, **form.filters
    )
    page = Paginator(rows, _PER_PAGE).get_page(request.GET.get("page"))
    titles = {"name": "Name", "state": "Status", "changed": "Changed"}
    can_request = policy.is_allowed(user, Action.REQUEST_CHANGE, owner)
    context: dict[str, Any] = {
        "team": owner,
        "form": form,
        "page": page,
        "rows": deployment_rows.build_rows(list(page)),
        "can_request": can_request,
        # Not polled: a draft changes only where its author types.
        "drafts": form_drafts.list_drafts(user=user, team=owner)
        if can_request and not is_partial(request)
        else [],
        "columns": sortable_columns(request, form.order, titles),
    }
    parts = {"deployment-rows": "pages/_list_rows.html"}
    return respond(request, "pages/list.html", context, parts=parts)
