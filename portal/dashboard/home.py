"""The home page: what needs attention, the team's deployments and their cost."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.safestring import SafeString
from django.views.decorators.http import require_GET, require_POST

from deployments.pages.selectors import deployment_rows
from deployments.pages.selectors import home as page_home
from deployments.serving.selectors import deployments, statistics
from fleet.telemetry.selectors import current
from portal.accounts import policy, preferences
from portal.accounts.models import Team, User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.cache import recent
from portal.dashboard import first_day, home_changes, home_needs, home_tiles, platform
from portal.dashboard.first_day import TeamProgress
from portal.dashboard.home_needs import Need
from portal.dashboard.home_tiles import SpendTile
from portal.ui import htmx, teams
from portal.ui.access import people_only
from portal.ui.htmx import SHARED_SECONDS, respond, respond_with_part, target_of

_DEPLOYMENTS = 8


@dataclass(frozen=True, slots=True)
class _OfPlatform:
    """The part of the platform's page that is the same for all its admins. Each of them dismisses of `failing`."""

    tiles: SafeString
    failing: tuple[Need, ...]
    details: SafeString


@dataclass(frozen=True, slots=True)
class _OfTeam:
    """The part of the page that is the same for all with the same rights in the team. `html` is tiles, deployments
    and changes.
    """

    html: SafeString
    spend: SpendTile
    is_new: bool
    progress: TeamProgress


@require_GET
@people_only
def home(request: HttpRequest, user: User) -> HttpResponse:
    """Show platform admins the platform, and lead everybody else to the home of the team whose page they opened last."""
    if user.is_platform_admin:
        return _platform_home(request, user)
    team = teams.get_last_used(request)
    if team is None:
        return render(request, "dashboard/home_without_team.html")
    return redirect("team-home", team.slug)


def _platform_home(request: HttpRequest, user: User) -> HttpResponse:
    """Show the platform. Polls of all admins share it, but for what each of them decides and dismisses."""
    now = clock.now()

    def make() -> _OfPlatform:
        context = platform.build_context(user, teams.visible(request), now)
        tiles = render_to_string("dashboard/_platform_tiles.html", context)
        details = render_to_string("dashboard/_platform_details.html", context)
        return _OfPlatform(tiles, tuple(context["failing"]), details)

    form = (*_OfPlatform.__slots__, *Need.__slots__)
    is_poll = target_of(request) == "platform"
    shared = recent(("platform", form), make, seconds=SHARED_SECONDS) if is_poll else make()
    dismissed = preferences.list_dismissed(user)
    decisions, failing = home_needs.list_decisions(user), shared.failing
    hidden = [need for need in (*decisions, *failing) if need.is_dismissed(dismissed, now)]
    context = {
        "decisions": [need for need in decisions if need not in hidden],
        "failing": [need for need in failing if need not in hidden],
        "hidden": hidden,
        "of_platform": shared,
        "dismiss_url": reverse("platform-dismiss"),
        "restore_url": reverse("platform-restore"),
    }
    parts = {"platform": "dashboard/_platform.html"}
    return respond(request, "dashboard/platform.html", context, parts=parts)


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
    form = (*_OfTeam.__slots__, *SpendTile.__slots__, *TeamProgress.__slots__)
    shared = recent(("home", shown.pk, can_request, form), make, seconds=SHARED_SECONDS)
    context = _context_of(user, shown, shared, now, can_request=can_request)
    return respond_with_part(request, "dashboard/_home.html", context)


@require_POST
@people_only
def dismiss(request: HttpRequest, user: User, team: str) -> HttpResponse:
    """Hide an item of the person's home page until its facts change, or the checklist for good."""
    shown = teams.get_visible(request, team)
    _dismiss(request, user)
    return htmx.redirect(request, reverse("team-home", args=(shown.slug,)))


@require_POST
@people_only
def restore(request: HttpRequest, user: User, team: str) -> HttpResponse:
    """Show the dismissed items that the form names again."""
    shown = teams.get_visible(request, team)
    preferences.restore_items(actor=user, keys=request.POST.getlist("key"))
    return htmx.redirect(request, reverse("team-home", args=(shown.slug,)))


@require_POST
@people_only
def dismiss_on_platform(request: HttpRequest, user: User) -> HttpResponse:
    """Hide an item of a platform admin's home page until its facts change."""
    policy.require_platform_admin(user)
    _dismiss(request, user)
    return htmx.redirect(request, reverse("home"))


@require_POST
@people_only
def restore_on_platform(request: HttpRequest, user: User) -> HttpResponse:
    """Show the dismissed items that the form names again."""
    policy.require_platform_admin(user)
    preferences.restore_items(actor=user, keys=request.POST.getlist("key"))
    return htmx.redirect(request, reverse("home"))


def _dismiss(request: HttpRequest, user: User) -> None:
    key, facts = request.POST.get("key", ""), request.POST.get("facts", "")
    preferences.dismiss_item(actor=user, key=key, facts=facts)


def _context_of(
    user: User, team: Team, of_team: _OfTeam, now: datetime, *, can_request: bool
) -> dict[str, Any]:
    needs = home_needs.list_needs(user, team, of_team.spend, now)
    dismissed = preferences.list_dismissed(user)
    hidden = [need for need in needs if need.is_dismissed(dismissed, now)]
    has_first_day = can_request and first_day.key_of(team) not in dismissed
    return {
        "team": team,
        "person": user.display_name,
        "needs": [need for need in needs if need not in hidden],
        "hidden": hidden,
        "dismiss_url": reverse("home-dismiss", args=(team.slug,)),
        "restore_url": reverse("home-restore", args=(team.slug,)),
        "first_day_key": first_day.key_of(team),
        "steps": first_day.list_steps(user, team, of_team.progress, now) if has_first_day else [],
        "of_team": of_team,
        "can_request": can_request,
    }


def _of_team(user: User, team: Team, now: datetime, *, can_request: bool) -> _OfTeam:
    allocated = current.count_team_gpus(team_slug=team.slug)
    spend = home_tiles.build_spend_tile(team, allocated, now)
    newest = page_home.deployments_to_watch(actor=user, team_slug=team.slug, limit=_DEPLOYMENTS)
    figures = statistics.total_figures(deployments.list_with_traffic(user, team_slug=team.slug))
    progress = first_day.read_progress(user, team, newest, figures)
    is_new = not progress.has_version
    context = {
        "team": team,
        "traffic": home_tiles.build_traffic_tiles(team, figures, now),
        "gpus": home_tiles.build_gpu_tile(team, allocated),
        "spend": spend,
        "rows": deployment_rows.build_rows(newest),
        "changes": home_changes.list_changes(team, now),
        "is_new": is_new,
        "can_request": can_request,
    }
    html = render_to_string("dashboard/_home_team.html", context)
    return _OfTeam(html, spend, is_new, progress)
