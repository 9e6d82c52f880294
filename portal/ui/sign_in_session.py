"""The result of a completed sign-in: a session that says how it began, and a browser that is known."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings
from django.contrib.auth import login
from django.contrib.auth.views import LogoutView
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect

from portal.accounts import sign_in_events, sign_ins
from portal.accounts.local import sessions, step_up
from portal.accounts.local.session_store import BEGAN
from portal.accounts.models import User
from portal.accounts.sign_ins import Attempt
from portal.core import clock
from portal.core.client_address import client_address, client_network

# A password that was right, before the code.
SECOND_STEP: Final = "second_step"


def build_attempt(request: HttpRequest, username: str) -> Attempt:
    device = request.COOKIES.get(sign_ins.COOKIE, "")
    return Attempt(username, client_network(request), device)


def begin_session(
    request: HttpRequest, *, method: str, authenticated_at: datetime | None = None
) -> None:
    """Say how the new session began, and end it a fixed time after the sign-in, whatever is kept in it
    meanwhile: a session that grew older with each use would keep roles that claims gave long ago.
    """
    at = clock.now()
    sessions.forget_expired()
    address = client_address(request)[:64]
    if isinstance(request.user, User):
        sign_in_events.record_success(request.user, method=method[:80], address=address)
    request.session[BEGAN] = {
        "at": at.isoformat(),
        "address": address,
        "user_agent": request.headers.get("User-Agent", "").replace("\0", "")[:300],
        "method": method[:80],
    }
    step_up.mark(request.session, authenticated_at)
    request.session.set_expiry(at + timedelta(seconds=settings.SESSION_COOKIE_AGE))


def finish(request: HttpRequest, user: User, *, method: str, next_path: str) -> HttpResponse:
    """Sign the person of a local account in. `next_path` was checked."""
    attempt = build_attempt(request, user.username)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    begin_session(request, method=method, authenticated_at=clock.now())
    response = redirect(next_path)
    response.set_cookie(
        sign_ins.COOKIE,
        sign_ins.cookie_after(attempt),
        max_age=sign_ins.COOKIE_SECONDS,
        path=settings.SESSION_COOKIE_PATH,
        secure=bool(settings.SESSION_COOKIE_SECURE),
        httponly=True,
        samesite="Lax",
    )
    return response


class SignOut(LogoutView):
    """The session ends, and the browser forgets what pages left in its storage."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        response = super().dispatch(request, *args, **kwargs)
        response["Clear-Site-Data"] = '"storage"'
        return response
