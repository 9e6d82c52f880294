"""The current team of a page, and domain errors in pages: a clear page, or for htmx a message."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.core.errors import DomainError
from portal.ui import htmx, teams

_WITHOUT_TEAM = ("/api/", "/static/")


class CurrentTeamMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(_WITHOUT_TEAM):
            teams.choose(request)
        return self.get_response(request)


class DomainErrorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, DomainError):
            return None
        status = HTTPStatus(error.status)
        if not htmx.is_partial(request):
            return render(request, "ui/problem.html", {"error": error}, status=status)
        response = render(request, "ui/_problem.html", {"error": error}, status=status)
        # What was clicked stays as it is; the message appears beside the page's content.
        response["HX-Retarget"] = "#toasts"
        response["HX-Reswap"] = "beforeend"
        return response
