"""The current team: chosen with `?team=` and stored in the session."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest

from portal.accounts import roles
from portal.accounts.models import Team, User
from portal.accounts.visible_queries import VisibleQuery

_VISIBLE = VisibleQuery(lambda teams: teams)
_SESSION_KEY = "team"


class PageRequest(HttpRequest):
    """A request with the attributes of CurrentTeamMiddleware."""

    team: Team | None
    visible_teams: list[Team]


def current(request: HttpRequest) -> Team | None:
    """The current team; None for users without a team."""
    team: Team | None = getattr(request, "team", None)
    return team


def visible(request: HttpRequest) -> list[Team]:
    """The visible teams, read once per request."""
    teams: list[Team] = getattr(request, "visible_teams", [])
    return teams


def choose(request: HttpRequest) -> None:
    """Set `request.visible_teams` and `request.team`. A team that is not visible is ignored."""
    user = request.user
    teams = _VISIBLE.objects(user) if isinstance(user, User) else []
    requested = request.GET.get("team", "")
    by_slug = {team.slug: team for team in teams}
    if requested in by_slug and request.session.get(_SESSION_KEY) != requested:
        request.session[_SESSION_KEY] = requested
    slug = requested if requested in by_slug else str(request.session.get(_SESSION_KEY, ""))
    page = cast("PageRequest", request)
    page.visible_teams = teams
    page.team = by_slug.get(slug) or _home(user, teams)


def _home(user: object, teams: list[Team]) -> Team | None:
    home_id = roles.home_team_id(user) if isinstance(user, User) and len(teams) > 1 else None
    return next((team for team in teams if team.pk == home_id), teams[0] if teams else None)
