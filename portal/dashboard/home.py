"""The home page: what needs attention, the team's deployments and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from itertools import zip_longest
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.safestring import SafeString
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
from portal.core.cache import recent
from portal.dashboard import home_needs, home_tiles, platform
from portal.dashboard.home_tiles import SpendTile
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.htmx import SHARED_SECONDS, respond, respond_with_part, target_of

_DEPLOYMENTS = 8
_EVENTS = 8


@dataclass(frozen=True, slots=True)
class _OfTeam:
    """The part of the page that is the same for all with the same rights in the team. `html` is tiles, deployments
    and events.
    """

    html: SafeString
    spend: SpendTile
    is_new: bool


@require_GET
@people_only
def home(request: HttpRequest, user: User) -> HttpResponse:
    """Show platform admins the platform, and lead everybody else to the home of the team whose page they opened last."""
    if user.is_platform_admin:
        context = platform.build_context(user, teams.visible(request), clock.now())
        parts = {"platform": "dashboard/_platform.html"}
        return respond(request, "dashboard/platform.html", context, parts=parts)
    team = teams.get_last_used(request)
    if team is None:
        return render(request, "dashboard/home_without_team.html")
    return redirect("team-home", team.slug)


@require_GET
@people_only
def team_home(request: HttpRequest, user: User, team: str) -> HttpResponse:
    shown = teams.get_visible(request, team)
    now = clock.now()
    can_request = policy.is_allowed(user, Action.REQUEST_CHANGE, shown)

    def make() -> _OfTeam:
        return _of_team(user, shown, now, can_request=can_request)

    if target_of(request) != "home":
        context = _context_of(user, shown, make(), now, can_request=can_request)
        return render(request, "dashboard/home.html", context)
    form = (*_OfTeam.__slots__, *SpendTile.__slots__)
    shared = recent(("home", shown.pk, can_request, form), make, seconds=SHARED_SECONDS)
    context = _context_of(user, shown, shared, now, can_request=can_request)
    return respond_with_part(request, "dashboard/_home.html", context)


def _context_of(
    user: User, team: Team, of_team: _OfTeam, now: datetime, *, can_request: bool
) -> dict[str, Any]:
    return {
        "team": team,
        "person": user.display_name,
        "needs": home_needs.list_needs(user, team, of_team.spend, now),
        "of_team": of_team,
        "can_request": can_request,
    }


def _of_team(user: User, team: Team, now: datetime, *, can_request: bool) -> _OfTeam:
    allocated = current.count_team_gpus(team_slug=team.slug)
    spend = home_tiles.build_spend_tile(team, allocated, now)
    newest = page_home.deployments_to_watch(actor=user, team_slug=team.slug, limit=_DEPLOYMENTS)
    is_new = not newest and not page_home.has_versions(actor=user, team_slug=team.slug)
    figures = statistics.total_figures(deployments.list_with_traffic(user, team_slug=team.slug))
    events = page_home.recent_events(actor=user, team_slug=team.slug)
    context = {
        "team": team,
        "traffic": home_tiles.build_traffic_tiles(team, figures, now),
        "gpus": home_tiles.build_gpu_tile(team, allocated),
        "spend": spend,
        "rows": deployment_rows.build_rows(newest),
        "events": _without_repeats(serving_events.event_rows(events))[:_EVENTS],
        "is_new": is_new,
        "can_request": can_request,
    }
    return _OfTeam(render_to_string("dashboard/_home_team.html", context), spend, is_new)


def _without_repeats(rows: list[EventRow]) -> list[EventRow]:
    """Drop consecutive events of a deployment with the same message and actor."""
    pairs = zip_longest(rows, rows[1:])
    return [row for row, older in pairs if older is None or _identity(row) != _identity(older)]


def _identity(event: EventRow) -> tuple[object, str, str]:
    return getattr(event.row, "deployment_id", None), event.row.message, event.row.actor_name
