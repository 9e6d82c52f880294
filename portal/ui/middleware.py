"""Domain errors in pages: a clear page, or for htmx a message beside what was clicked."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.core.errors import DomainError


class DomainErrorMiddleware:
    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not isinstance(error, DomainError):
            return None
        name = "ui/_problem.html" if getattr(request, "htmx", False) else "ui/problem.html"
        return render(request, name, {"error": error}, status=HTTPStatus(error.status))
