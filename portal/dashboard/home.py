"""The home page: what needs attention, the team's deployments and their cost."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from deployments.pages.selectors import deployment_rows
from deployments.pages.selectors import home as page_home
from deployments.serving.selectors import deployments, statistics
from deployments.serving.web import events as serving_events
from deployments.serving.web.events import EventRow
from fleet.telemetry.selectors import current
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core import clock
from portal.dashboard import home_needs, home_tiles
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import respond

_DEPLOYMENTS = 8
_EVENTS = 8


@require_GET
@people_only
def home(request: HttpRequest, user: User) -> HttpResponse:
    team = teams.current(request)
    if team is None:
        return render(request, "dashboard/home_without_team.html")
    parts = {"home": "dashboard/_home.html"}
    return respond(request, "dashboard/home.html", _context_of(user, team), parts=parts)


def _context_of(user: User, team: Team) -> dict[str, Any]:
    now = clock.now()
    allocated = current.allocated_to_team(team_slug=team.slug)
    spend = home_tiles.spend_of(team, allocated, now)
    newest = page_home.deployments_to_watch(actor=user, team_slug=team.slug, limit=_DEPLOYMENTS)
    of_team = deployments.list_with_traffic(user, team_slug=team.slug)
    figures = statistics.total_figures(of_team)
    events = page_home.recent_events(actor=user, team_slug=team.slug)
    return {
        "team": team,
        "person": user.display_name,
        "needs": home_needs.needs_of(user, team, spend, now),
        "traffic": home_tiles.traffic_of(team, figures, now),
        "gpus": home_tiles.gpus_of(team, allocated),
        "spend": spend,
        "rows": deployment_rows.build_rows(newest),
        "events": _without_repeats(serving_events.event_rows(events))[:_EVENTS],
        "is_new": not newest and not page_home.has_versions(actor=user, team_slug=team.slug),
        "can_request": policy.is_allowed(user, Action.REQUEST_CHANGE, team),
    }


def _without_repeats(rows: list[EventRow]) -> list[EventRow]:
    """Drop consecutive events of a deployment with the same message and actor."""
    pairs = zip_longest(rows, rows[1:])
    return [row for row, older in pairs if older is None or _identity(row) != _identity(older)]


def _identity(event: EventRow) -> tuple[object, str, str]:
    return getattr(event.row, "deployment_id", None), event.row.message, event.row.actor_name
