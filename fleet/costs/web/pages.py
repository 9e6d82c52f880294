"""The Costs page, the ledger, and their downloads."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fleet.costs.domain import change_lines, file_names
from fleet.costs.domain.cost_changes import CostChange
from fleet.costs.domain.results import CostTable, GroupBy, IdleRule
from fleet.costs.selectors import (
    anomalies,
    cost_changes,
    costs,
    ledger_entries,
    ledger_rows,
    open_hours,
    series,
)
from fleet.costs.selectors.open_hours import Unsealed
from fleet.costs.services import exports, marks, named_pages
from fleet.costs.web import board as cost_board
from fleet.costs.web import csv, ledger_query
from fleet.costs.web import query as cost_query
from fleet.costs.web.query import CostQuery
from fleet.telemetry.selectors import current
from fleet.telemetry.selectors.current import AllocatedGpus
from portal.accounts.models import User
from portal.core import clock
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.addresses import with_query


@require_GET
@people_only
def costs_page(request: HttpRequest, user: User) -> HttpResponse:
    now = clock.now()
    query = _query(request)
    slugs = _slugs(request, user, query)
    unsealed = open_hours.read(slugs, query.start, query.end)
    table = _table(query, slugs, unsealed, limit=cost_query.ROWS_PER_PAGE, offset=query.offset)
    points = series.series(
        team_slugs=slugs,
        start=query.start,
        end=query.end,
        group_by=query.group_by,
        step=query.step,
        named=[row.key for row in table.rows[: cost_board.NAMED]],
        unsealed=unsealed,
    )
    changes = marks.list_marks(
        table.rows[: cost_board.NAMED],
        query.group_by,
        start=query.start,
        end=query.end,
    )
    board = cost_board.build(
        query=query,
        table=table,
        points=points,
        changes=changes,
        without_page=named_pages.without_page(table, query.group_by),
        budget_amount=_budget(request, query, slugs),
        allocated=_allocated(slugs),
        why=change_lines.describe(_change(query, slugs, unsealed), team_slug=query.team_slug),
        now=now,
        sees_idle=slugs is None,
        unusual=anomalies.filter_by_teams(anomalies.recent(), slugs),
    )
    return render(request, "costs/costs.html", _cost_context(request, query, board))


@require_GET
@people_only
def costs_csv(request: HttpRequest, user: User) -> StreamingHttpResponse:
    query = _query(request)
    return csv.table_csv(_table(query, _slugs(request, user, query)))


@require_GET
@people_only
def ledger_page(request: HttpRequest, user: User) -> HttpResponse:
    row_filter = ledger_query.read(request.GET, now=clock.now())
    slugs = _slugs(request, user, _query(request))
    page = ledger_rows.page(
        team_slugs=slugs, row_filter=row_filter, cursor=request.GET.get("older_than", "")
    )
    context = {
        "page": page,
        "row_filter": row_filter,
        "newest_page": "" if page.is_first else with_query(request, older_than=None),
        "older_page": with_query(request, older_than=page.next_cursor) if page.next_cursor else "",
    }
    return render(request, "costs/ledger.html", context)


@require_GET
@people_only
def ledger_csv(request: HttpRequest, user: User) -> StreamingHttpResponse:
    row_filter = ledger_query.read(request.GET, now=clock.now())
    slugs = _slugs(request, user, _query(request))
    exports.record(actor=user, team_slugs=slugs, start=row_filter.start, end=row_filter.end)
    rows = ledger_entries.entries(team_slugs=slugs, row_filter=row_filter)
    name = file_names.name_for_period("ledger", row_filter.start, row_filter.end)
    return csv.ledger_csv(rows, name)


def _query(request: HttpRequest) -> CostQuery:
    visible = [team.slug for team in teams.visible(request)]
    return cost_query.read(request.GET, now=clock.now(), team_slugs=visible)


def _slugs(request: HttpRequest, user: User, query: CostQuery) -> Sequence[str] | None:
    """Return the slugs of the teams to show. None means the whole fleet with idle, for platform admins."""
    if query.team_slug:
        return [query.team_slug]
    return None if user.is_platform_admin else [team.slug for team in teams.visible(request)]


def _table(
    query: CostQuery,
    slugs: Sequence[str] | None,
    unsealed: Unsealed | None = None,
    *,
    limit: int | None = None,
    offset: int = 0,
) -> CostTable:
    return costs.table(
        team_slugs=slugs,
        start=query.start,
        end=query.end,
        group_by=query.group_by,
        limit=limit,
        offset=offset,
        unsealed=unsealed,
        idle_rule=query.idle_rule,
    )


def _change(query: CostQuery, slugs: Sequence[str] | None, unsealed: Unsealed) -> CostChange:
    return cost_changes.explain(
        team_slugs=slugs,
        start=query.start,
        end=query.end,
        has_idle=slugs is None and query.idle_rule is not IdleRule.HIDDEN,
        unsealed=unsealed,
    )


def _allocated(slugs: Sequence[str] | None) -> AllocatedGpus:
    if slugs is None:
        return current.all_gpus()
    return current.count_teams_gpus(team_slugs=slugs)


def _budget(request: HttpRequest, query: CostQuery, slugs: Sequence[str] | None) -> Decimal | None:
    """Sum the monthly budgets of the teams whose costs are shown. 0 if they have none. None if the page also shows
    costs without a budget: of teams without one, or of the whole fleet, whose idle is no team's.
    """
    budgets = [
        team.monthly_budget_amount
        for team in teams.visible(request)
        if query.team_slug in ("", team.slug)
    ]
    if slugs is None or 0 < budgets.count(Decimal(0)) < len(budgets):
        return None if any(budgets) else Decimal(0)
    return sum(budgets, Decimal(0))


def _cost_context(
    request: HttpRequest, query: CostQuery, board: cost_board.CostBoard
) -> dict[str, object]:
    return {
        "board": board,
        "query": query,
        "teams": teams.visible(request),
        "ranges": [
            (name, text, with_query(request, range=name, start=None, end=None, page=None))
            for name, text in cost_query.RANGES
        ],
        "groups": [
            (group, text, with_query(request, group=group, page=None))
            for group, text in cost_query.GROUPS
        ],
        "idle_rules": [
            (rule, text, with_query(request, idle=rule, page=None))
            for rule, text in cost_query.IDLE_RULES
            if query.group_by is not GroupBy.CLUSTER or not rule.is_shared
        ],
        "previous_page": with_query(request, page=str(query.page - 1)) if query.page > 1 else "",
        "next_page": with_query(request, page=str(query.page + 1)) if board.has_more else "",
        "csv_url": f"/costs.csv?{request.GET.urlencode()}",
    }
