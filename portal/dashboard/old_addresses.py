"""Addresses of 0.3.0 and before, which named the kind of a page before the team, or no team."""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse

from deployments.imports.selectors import imports
from portal.accounts.models import User
from portal.ui import teams
from portal.ui.access import people_only
from portal.ui.addresses import with_query

# Sections whose pages each name a team.
_OF_TEAM: Final = ("models", "deployments", "pipelines", "batch")
_WITHOUT_TEAM: Final = (
    *_OF_TEAM,
    *("deployments/new", "pipelines/new", "batch/new", "upload", "register", "import"),
    "import/mlflow/<slug:server>",
)


@people_only
def insert_team(request: HttpRequest, user: User, server: str = "") -> HttpResponse:
    """Redirect `/models` to `/vision/models`, for the team of its query or else the user's last one. `server` is part
    of the path.
    """
    team = teams.get_last_used(request)
    if team is None:
        return HttpResponseRedirect(reverse("home"))
    return _redirect(f"/{team.slug}{with_query(request, team=None)}")


@people_only
def move_team_first(request: HttpRequest, user: User, team: str, rest: str) -> HttpResponse:
    """Redirect `/models/vision/detector/3` to `/vision/models/detector/3`."""
    section = request.path.split("/")[1]
    start = f"/{section}/{team}/"
    return _redirect(f"/{team}/{section}/{with_query(request).removeprefix(start)}")


@people_only
def lead_to_import(request: HttpRequest, user: User, import_id: int) -> HttpResponse:
    """Redirect `/imports/3` to the page below the team whose version it imports."""
    job = imports.get_import(actor=user, import_id=import_id)
    return _redirect(reverse("import", args=[job.version.team.slug, import_id]))


@people_only
def move_api_reference(request: HttpRequest, user: User) -> HttpResponse:
    """Redirect `/api/docs` to the reference among the documents."""
    return _redirect(reverse("api-docs"))


def _redirect(address: str) -> HttpResponse:
    """Redirect with 307, after which the browser repeats a POST as a POST."""
    return HttpResponse(status=307, headers={"Location": address})


urlpatterns: list[URLPattern] = [
    *(path(address, insert_team) for address in _WITHOUT_TEAM),
    path("api/docs", move_api_reference),
    path("imports/<int:import_id>", lead_to_import),
    *(path(f"{section}/<slug:team>/<path:rest>", move_team_first) for section in _OF_TEAM),
]
