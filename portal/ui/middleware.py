"""Middleware of pages: the person, the team of the address, last use of a session, caching of fragments, domain errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, cast

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.auth.models import AnonymousUser
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.functional import SimpleLazyObject

from portal.accounts.local import second_factor, session_user, sessions, step_up
from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.ui import htmx, teams
from portal.ui.addresses import with_query

# static/js/session.js sends it.
_UNATTENDED = "Slipway-Unattended"
# The filter by team in links of 0.3.0 and before.
_OLD_FILTER = "of"
_WITHOUT_TEAM = ("/api/", "/static/")
# Public files that are cached for a year.
_WITHOUT_FRAGMENTS = ("/api/", "/static/", "/charts/")
# What one needs to set up a second factor, or to leave.
_WITHOUT_FACTOR = (
    *("/account/security", "/account/password", "/account/sessions", "/account/second-factor"),
    *("/sign-", "/static/", "/charts/", "/session", "/theme", "/healthz", "/readyz"),
    # Refused by portal.api.border.
    "/api/",
)


class TeamMiddleware:
    """Find the team that the address of a page names: `/vision/models`, or `/costs?team=vision`."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path.startswith(_WITHOUT_TEAM):
            teams.find(request)
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: Mapping[str, Any]
    ) -> HttpResponse | None:
        """Open the page of a team. Only an address that exists is redirected: one that begins with two slashes would
        lead to another host.
        """
        if request.path.startswith(_WITHOUT_TEAM):
            return None
        if request.method == "GET" and _OLD_FILTER in request.GET:
            address = with_query(request, of=None, team=request.GET[_OLD_FILTER])
            return HttpResponseRedirect(address)
        if "team" in kwargs:
            teams.open_page(request, str(kwargs["team"]))
        return None


class LastSeenMiddleware:
    """Keep the last use of a session that this request has read. What a page asks for while nobody
    touches it is no use.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if _UNATTENDED in request.headers:
            return response
        store = request.session
        sessions.touch(store.session_key, seen_at=getattr(store, "seen_at", None))
        return response


class SessionUserMiddleware(AuthenticationMiddleware):
    """The person of the session, with when they last authenticated where the platform asks for it."""

    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        request.user = cast("User", SimpleLazyObject(lambda: _person_of(request)))


def _person_of(request: HttpRequest) -> AnonymousUser | AbstractBaseUser:
    user = session_user.user_of(request)
    if settings.SLIPWAY_STEP_UP_MINUTES and isinstance(user, User):
        user.authenticated_at = step_up.time_of(request.session)
    return user


class SecondFactorMiddleware:
    """Lead those who must have a second factor to the page that sets it up, and nowhere else."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not settings.SLIPWAY_REQUIRE_SECOND_FACTOR or request.path.startswith(_WITHOUT_FACTOR):
            return self.get_response(request)
        user, method = request.user, sessions.method_of(request.session)
        if isinstance(user, User) and second_factor.is_missing(user, method=method):
            return htmx.redirect(request, reverse("second-factor"))
        return self.get_response(request)


class FragmentCacheMiddleware:
    """Keep caches from mixing up pages and fragments of the same URL. Fragments are not stored."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.path.startswith(_WITHOUT_FRAGMENTS):
            return response
        patch_vary_headers(response, ["HX-Request"])
        if htmx.is_htmx_request(request):
            response["Cache-Control"] = "no-store"
        return response


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
        # The clicked element stays unchanged; the message is added to the page's toasts.
        response["HX-Retarget"] = "#toasts"
        response["HX-Reswap"] = "beforeend"
        return response
