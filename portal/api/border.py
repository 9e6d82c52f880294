"""Errors outside the API's views: a problem under /api/, a page elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.exceptions import SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from django.views import defaults

from portal.accounts.local import second_factor, sessions
from portal.accounts.models import User
from portal.api.base_serializer import HIGHEST_INTEGER
from portal.api.problems import CONTENT_TYPE, body_of
from portal.core.errors import DomainError, Forbidden, NotFound

_API = "/api/"
_USE_HTTPS = (
    "Use https:// in the address. A token that was sent without TLS may have been read on the way: "
    "revoke it and make a new one."
)
_SET_UP = "The platform requires you to use a second factor. Set it up under Sign-in and sessions."


class _InternalError(DomainError):
    code = "internal_error"
    status = HTTPStatus.INTERNAL_SERVER_ERROR
    title = "Internal error"


class _TlsMissing(Forbidden):
    code = "https_required"
    title = "HTTPS required"


class _MalformedRequest(DomainError):
    code = "bad_request"
    title = "Bad request"


class NulMiddleware:
    """Reject NUL in addresses, on which PostgreSQL fails. Forms and the JSON parser reject it in fields."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if "\0" in request.path:
            return _not_found(request)
        if "%00" in request.META.get("QUERY_STRING", ""):
            return _reject_nul(request)
        return self.get_response(request)


class LargeNumberMiddleware:
    """Nothing has a number in its address that no column can hold. SQLite and PostgreSQL fail on it."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, _view: Any, _args: Any, names: Mapping[str, Any]
    ) -> HttpResponseBase | None:
        numbers = [value for value in names.values() if isinstance(value, int)]
        return _not_found(request) if max(numbers, default=0) > HIGHEST_INTEGER else None


class PlainHttpMiddleware:
    """Refuse REST without TLS. A redirect would hide from a client that it sends its token in the clear."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        is_rest = request.path.startswith(_API)
        if is_rest and settings.SECURE_SSL_REDIRECT and not request.is_secure():
            return _problem(_TlsMissing(_USE_HTTPS))
        return self.get_response(request)


class ApiSecondFactorMiddleware:
    """Refuse sessions that lack a required second factor. Pages lead to its set-up (portal.ui.middleware)."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        if not settings.SLIPWAY_REQUIRE_SECOND_FACTOR or not request.path.startswith(_API):
            return self.get_response(request)
        user, method = request.user, sessions.method_of(request.session)
        if isinstance(user, User) and second_factor.is_missing(user, method=method):
            return _problem(Forbidden(_SET_UP, code="second_factor_missing"))
        return self.get_response(request)


def _not_found(request: HttpRequest) -> HttpResponse:
    if not request.path.startswith(_API):
        raise Http404
    return _problem(NotFound("Nothing exists at this address."))


def _reject_nul(request: HttpRequest) -> HttpResponseBase:
    if not request.path.startswith(_API):
        return defaults.bad_request(request, SuspiciousOperation("NUL in the query"))
    return _problem(_MalformedRequest("The query contains a NUL character (%00). Remove it."))


def server_error(request: HttpRequest) -> HttpResponseBase:
    if not request.path.startswith(_API):
        return defaults.server_error(request)
    return _problem(
        _InternalError(
            "The error was logged. Try again, and contact a platform admin if it keeps happening."
        )
    )


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponseBase:
    if not request.path.startswith(_API):
        return defaults.bad_request(request, exception)
    return _problem(
        _MalformedRequest("The request is malformed. Check its host, size and headers.")
    )


def _problem(error: DomainError) -> HttpResponse:
    return JsonResponse(body_of(error), status=error.status, content_type=CONTENT_TYPE)
