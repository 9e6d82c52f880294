"""Views that every page's frame needs: theme, session and the chart script."""

from __future__ import annotations

import gzip
from http import HTTPStatus

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse
from django.middleware.csrf import get_token
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_GET, require_POST

from portal.accounts import preferences
from portal.accounts.models import User
from portal.core.errors import NotFound
from portal.ui import htmx
from portal.ui.context import THEME_COOKIE
from portal.ui.vega import bundle

_YEAR_SECONDS = 31_536_000


@require_POST
def theme(request: HttpRequest) -> HttpResponse:
    """Store the chosen theme; anonymous users keep it in a cookie."""
    chosen = preferences.checked_theme(request.POST.get("theme", ""))
    if isinstance(request.user, User):
        preferences.set_theme(actor=request.user, theme=chosen)
    response = HttpResponse(status=204) if htmx.is_partial(request) else _back(request)
    response.set_cookie(
        THEME_COOKIE,
        chosen,
        max_age=_YEAR_SECONDS,
        secure=bool(settings.SESSION_COOKIE_SECURE),
        samesite="Lax",
        httponly=True,
    )
    return response


@require_GET
def session(request: HttpRequest) -> HttpResponse:
    """Return the signed-in user, for pages that stay open, with the current CSRF token, which signing in changes.
    401 for anonymous requests.
    """
    if not isinstance(request.user, User):
        response = JsonResponse({"user": None}, status=HTTPStatus.UNAUTHORIZED)
    else:
        body = {"user": request.user.username, "csrf_token": get_token(request)}
        response = JsonResponse(body)
    response["Cache-Control"] = "no-store"
    return response


@require_GET
def chart_script(request: HttpRequest, version: str) -> HttpResponse:
    if version != bundle.VERSION:
        raise NotFound("Chart script version not found.")
    compressed = bundle.compress_bundle()
    is_gzip = "gzip" in request.headers.get("Accept-Encoding", "")
    response = HttpResponse(
        compressed if is_gzip else gzip.decompress(compressed),
        content_type="text/javascript; charset=utf-8",
    )
    if is_gzip:
        response["Content-Encoding"] = "gzip"
    response["Vary"] = "Accept-Encoding"
    response["Cache-Control"] = f"public, max-age={_YEAR_SECONDS}, immutable"
    return response


def _back(request: HttpRequest) -> HttpResponse:
    url = request.headers.get("Referer", "")
    is_ours = url_has_allowed_host_and_scheme(url, allowed_hosts={request.get_host()})
    return HttpResponseRedirect(url if is_ours else "/")
