"""The current team: chosen with `?team=` and stored in the session."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest

from portal.accounts import policy, roles
from portal.accounts.models import Team, User
from portal.accounts.roles import HeldRoles

_SESSION_KEY = "team"


class PageRequest(HttpRequest):
    """A request with the attributes of CurrentTeamMiddleware."""

    team: Team | None
    visible_teams: list[Team]
    held_roles: HeldRoles


def current(request: HttpRequest) -> Team | None:
    """Return the current team. None for users without a team."""
    team: Team | None = getattr(request, "team", None)
    return team


def visible(request: HttpRequest) -> list[Team]:
    """Return the visible teams, read once per request."""
    teams: list[Team] = getattr(request, "visible_teams", [])
    return teams


def held_roles(request: HttpRequest, user: User) -> HeldRoles:
    """Return the roles of the request's user, read at most once in it."""
    page = cast("PageRequest", request)
    if not hasattr(page, "held_roles"):
        page.held_roles = roles.list_held_roles(user)
    return page.held_roles


def choose(request: HttpRequest) -> None:
    """Set `request.visible_teams` and `request.team`. A team that is not visible is ignored."""
    user = request.user
    teams = list(policy.visible_teams(user)) if isinstance(user, User) else []
    requested = request.GET.get("team", "")
    by_slug = {team.slug: team for team in teams}
    if requested in by_slug and request.session.get(_SESSION_KEY) != requested:
        request.session[_SESSION_KEY] = requested
    slug = requested if requested in by_slug else str(request.session.get(_SESSION_KEY, ""))
    page = cast("PageRequest", request)
    page.visible_teams = teams
    page.team = by_slug.get(slug) or _home(request, teams)


def _home(request: HttpRequest, teams: list[Team]) -> Team | None:
    user, home_id = request.user, None
    if isinstance(user, User) and len(teams) > 1:
        home_id = roles.home_team_id(held_roles(request, user))
    return next((team for team in teams if team.pk == home_id), teams[0] if teams else None)
