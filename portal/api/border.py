"""Errors that happen outside the API's views: a problem under /api/, a page elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from http import HTTPStatus

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views import defaults

from portal.api.problems import CONTENT_TYPE, body_of
from portal.core.errors import DomainError, NotFound

_API = "/api/"


class _Ours(DomainError):
    code = "internal_error"
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    title = "The portal failed"


class _Unreadable(DomainError):
    code = "bad_request"
    title = "The request cannot be read"


class NulMiddleware:
    """Nothing is named with NUL, and PostgreSQL fails when asked for such a name."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" not in request.path:
            return self.get_response(request)
        if not request.path.startswith(_API):
            raise Http404
        return _problem(NotFound("There is nothing at this address."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    if not request.path.startswith(_API):
        return defaults.server_error(request)
    return _problem(
        _Ours("This is our fault and was logged. Try again; if it stays, tell us when.")
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not request.path.startswith(_API):
        return defaults.bad_request(request, exception)
    return _problem(_Unreadable("The request is not well-formed: check host, size and headers."))


def _problem(error: DomainError) -> HttpResponse:
    return JsonResponse(body_of(error), status=error.status, content_type=CONTENT_TYPE)
