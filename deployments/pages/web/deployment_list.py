"""The deployments of a team, or of all teams for those who see all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from deployments.pages.selectors import deployment_list, deployment_rows
from deployments.pages.selectors.deployment_list import ListQuery
from deployments.states import DeploymentState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond


@dataclass(frozen=True, slots=True)
class Column:
    title: str
    address: str
    # For aria-sort: "ascending", "descending" or "".
    direction: str


@require_GET
@people_only
def deployments(request: HttpRequest, user: User) -> HttpResponse:
    query = ListQuery.read(request.GET)
    team = teams.current(request)
    page = deployment_list.page_of(actor=user, team_slug=team.slug if team else None, query=query)
    context: dict[str, Any] = {
        "team": team,
        "query": query,
        "page": page,
        "rows": deployment_rows.build_rows(list(page)),
        "states": [state for state in DeploymentState if state != DeploymentState.RETIRED],
        "can_request": team is not None and policy.is_allowed(user, Action.REQUEST_CHANGE, team),
        "sortable": True,
        "columns": [_column(query, "Name", "name"), _column(query, "Status", "state")],
        "changed_column": _column(query, "Changed", "changed"),
        "previous_address": query.at_page(page.number - 1) if page.has_previous() else "",
        "next_address": query.at_page(page.number + 1) if page.has_next() else "",
    }
    parts = {"deployment-rows": "pages/_list_rows.html"}
    return respond(request, "pages/list.html", context, parts=parts)


def _column(query: ListQuery, title: str, name: str) -> Column:
    directions = {name: "ascending", f"-{name}": "descending"}
    return Column(title, query.sorted_by(name), directions.get(query.sort, ""))
