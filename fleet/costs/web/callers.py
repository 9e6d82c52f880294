"""The page of what the callers of a team's deployments sent and cost, and its download."""

from __future__ import annotations

from collections.abc import Iterable

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fleet.costs.domain import file_names
from fleet.costs.selectors import callers
from fleet.costs.selectors.callers import CallerCost
from fleet.costs.web import query as cost_query
from fleet.costs.web.query import CostQuery
from fleet.prices.domain.csv_cells import quote_formula
from portal.accounts.models import User
from portal.core import clock, csv_export
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.addresses import with_query

_COLUMNS = ("team", "deployment", "caller", "not_attributed", "requests", "ratio", "cost_usd")


@require_GET
@people_only
def callers_page(request: HttpRequest, user: User) -> HttpResponse:
    query, team_slug = _query(request)
    rows = _rows(query, team_slug)
    context = {
        "query": query,
        "rows": rows,
        "total": callers.sum_rows(rows),
        "team_slug": team_slug,
        "teams": teams.visible(request),
        "ranges": [
            (name, text, with_query(request, range=name, start=None, end=None))
            for name, text in cost_query.RANGES
        ],
        "csv_url": f"/costs/callers.csv?{request.GET.urlencode()}",
    }
    return render(request, "costs/callers.html", context)


@require_GET
@people_only
def callers_csv(request: HttpRequest, user: User) -> StreamingHttpResponse:
    query, team_slug = _query(request)
    name = file_names.name_for_period("callers", query.start, query.end)
    return csv_export.stream(_COLUMNS, _lines(_rows(query, team_slug)), name)


def _query(request: HttpRequest) -> tuple[CostQuery, str]:
    """Read the query and the slug of one of the visible teams. Empty if there is no visible team."""
    slugs = [team.slug for team in teams.visible(request)]
    query = cost_query.read(request.GET, now=clock.now(), team_slugs=slugs)
    return query, query.team_slug or next(iter(slugs), "")


def _rows(query: CostQuery, team_slug: str) -> list[CallerCost]:
    return callers.rows(team_slug=team_slug, start=query.start, end=query.end) if team_slug else []


def _lines(rows: Iterable[CallerCost]) -> Iterable[list[object]]:
    for row in rows:
        yield [
            row.team_slug,
            quote_formula(row.deployment),
            quote_formula(row.caller),
            row.rest or "",
            "" if row.requests is None else row.requests,
            "" if row.ratio is None else f"{row.ratio:.6f}",
            f"{row.amount:f}",
        ]
