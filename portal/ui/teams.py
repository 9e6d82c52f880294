"""The team a person is looking at: chosen with `?team=`, remembered in the session."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest

from portal.accounts import policy, roles
from portal.accounts.models import Team, User

_SESSION_KEY = "team"


class PageRequest(HttpRequest):
    """What CurrentTeamMiddleware makes of a request."""

    team: Team | None
    visible_teams: list[Team]


def current(request: HttpRequest) -> Team | None:
    """The remembered team, else the first visible one; None for people in no team."""
    team: Team | None = getattr(request, "team", None)
    return team


def visible(request: HttpRequest) -> list[Team]:
    """Every team of the switcher, read once per request."""
    teams: list[Team] = getattr(request, "visible_teams", [])
    return teams


def choose(request: HttpRequest) -> None:
    """Set `request.visible_teams` and `request.team`. A team that is not visible is ignored."""
    user = request.user
    teams = list(policy.visible_teams(user)) if isinstance(user, User) else []
    wanted = request.GET.get("team", "")
    by_slug = {team.slug: team for team in teams}
    if wanted in by_slug and request.session.get(_SESSION_KEY) != wanted:
        request.session[_SESSION_KEY] = wanted
    slug = wanted if wanted in by_slug else str(request.session.get(_SESSION_KEY, ""))
    page = cast("PageRequest", request)
    page.visible_teams = teams
    page.team = by_slug.get(slug) or _home(user, teams)


def _home(user: object, teams: list[Team]) -> Team | None:
    home_id = roles.home_team_id(user) if isinstance(user, User) and len(teams) > 1 else None
    return next((team for team in teams if team.pk == home_id), teams[0] if teams else None)
