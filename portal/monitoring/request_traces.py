"""A trace begins with a request that may change something: a click, or a call of the REST API."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponseBase

from portal.core import tracing

_METHODS: Final = frozenset({"POST", "PUT", "PATCH", "DELETE"})


class TracingMiddleware:
    """A `traceparent` that a client sends is not taken over: it could join any trace."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if request.method not in _METHODS or not tracing.is_on():
            return self.get_response(request)
        with tracing.span(str(request.method)):
            response = self.get_response(request)
            match = request.resolver_match
            view = match.view_name if match else "unmatched"
            attributes: dict[str, str | int | bool] = {
                "http.request.method": str(request.method),
                "http.route": str(match.route) if match else "",
                "http.response.status_code": response.status_code,
            }
            tracing.name_current(f"{request.method} {view}", attributes)
            return response
