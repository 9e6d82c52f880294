"""The team of a page: named by its address, in the path (`/vision/models`) or as a filter (`?team=vision`)."""

from __future__ import annotations

from typing import cast

from django.http import HttpRequest

from portal.accounts import policy, preferences, roles
from portal.accounts.models import Team, User
from portal.accounts.roles import HeldRoles
from portal.core.errors import NotFound
from portal.ui import htmx

FILTER = "team"


class PageRequest(HttpRequest):
    """A request with the attributes of TeamMiddleware."""

    named_team: Team | None
    last_team: Team | None
    visible_teams: list[Team]
    held_roles: HeldRoles


def get_visible(request: HttpRequest, slug: str) -> Team:
    """Return a team that the user may see, or raise NotFound."""
    for team in visible(request):
        if team.slug == slug:
            return team
    raise NotFound(
        f"No page or team is called {slug}, or you are not in that team. Ask one of its leads to add you."
    )


def get_named(request: HttpRequest) -> Team | None:
    """Return the team that the address names. None for an address of all teams."""
    team: Team | None = getattr(request, "named_team", None)
    return team


def get_last_used(request: HttpRequest) -> Team | None:
    """Return the team that the address names, else the one whose page the user opened last. None for users without
    a team.
    """
    team: Team | None = getattr(request, "last_team", None)
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


def find(request: HttpRequest) -> None:
    """Set the visible teams, the team of the filter, and the last used one."""
    user = request.user
    page = cast("PageRequest", request)
    page.visible_teams = list(policy.visible_teams(user)) if isinstance(user, User) else []
    _name(page, request.GET.get(FILTER, ""))
    page.last_team = page.named_team or _last_or_first(request, page.visible_teams)


def open_page(request: HttpRequest, slug: str) -> None:
    """Set the team of a page below a team's address. It becomes the user's last team, unless the page only polls."""
    page = cast("PageRequest", request)
    _name(page, slug)
    page.last_team = page.named_team or page.last_team
    user = request.user
    if page.named_team and isinstance(user, User) and not htmx.is_htmx_request(request):
        preferences.set_last_team(user, page.named_team)


def _name(page: PageRequest, slug: str) -> None:
    page.named_team = next((team for team in page.visible_teams if team.slug == slug), None)


def _last_or_first(request: HttpRequest, teams: list[Team]) -> Team | None:
    user = request.user
    if not isinstance(user, User) or not teams:
        return None
    ids = [user.last_team_id]
    if len(teams) > 1:
        ids.append(roles.home_team_id(held_roles(request, user)))
    by_id = {team.pk: team for team in teams}
    return next((by_id[pk] for pk in ids if pk in by_id), teams[0])
