"""Django's sign-in page with limits on failures."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse

from portal.accounts import sign_ins
from portal.accounts.local.session_store import BEGAN
from portal.accounts.sign_ins import Attempt
from portal.core import clock
from portal.core.client_address import client_address, client_network
from portal.ui import kept_input

_TOO_MANY = "too_many_failures"
_BUSY_SECONDS = 10


def begin_session(request: HttpRequest, *, method: str) -> None:
    """Say how the new session began, and end it a fixed time after the sign-in, whatever is kept in it
    meanwhile: a session that grew older with each use would keep roles that claims gave long ago.
    """
    at = clock.now()
    request.session[BEGAN] = {
        "at": at.isoformat(),
        "address": client_address(request)[:64],
        "user_agent": request.headers.get("User-Agent", "").replace("\0", "")[:300],
        "method": method[:80],
    }
    request.session.set_expiry(at + timedelta(seconds=settings.SESSION_COOKIE_AGE))


def attempt_of(request: HttpRequest, username: str) -> Attempt:
    device = request.COOKIES.get(sign_ins.COOKIE, "")
    return Attempt(username, client_network(request), device)


class SignInForm(AuthenticationForm):
    retry_after_seconds = 0

    def attempt(self) -> Attempt:
        username = str(self.cleaned_data.get("username") or "")
        if self.request is None:
            return Attempt(username, "")
        return attempt_of(self.request, username)

    def clean(self) -> dict[str, Any]:
        if not self.cleaned_data.get("username") or not self.cleaned_data.get("password"):
            return super().clean()
        attempt = self.attempt()
        if seconds := sign_ins.begin(attempt):
            minutes = -(-seconds // 60)
            self._refuse(
                f"Too many failed sign-ins. Try again in {minutes} "
                f"{'minute' if minutes == 1 else 'minutes'}, or from a browser in which you have "
                "signed in before.",
                seconds,
            )
        with sign_ins.password_check_slot() as has_slot:
            if not has_slot:
                self._refuse(
                    "Too many people are signing in. Try again in a moment.", _BUSY_SECONDS
                )
            cleaned = super().clean()
        sign_ins.succeeded(attempt)
        return cleaned

    def _refuse(self, message: str, seconds: int) -> None:
        self.retry_after_seconds = seconds
        raise ValidationError(message, code=_TOO_MANY)


class SignIn(LoginView):
    template_name = "ui/sign_in.html"
    authentication_form = SignInForm

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        kept = self.request.POST.get("kept", "")
        return super().get_context_data(**kwargs) | {
            "kept": kept,
            "providers": settings.SLIPWAY_OIDC,
        }

    def form_valid(self, form: AuthenticationForm) -> HttpResponse:
        """Restore kept form input. The form's own page checks that this user may see it."""
        kept = kept_input.opened(self.request.POST.get("kept", ""))
        response = super().form_valid(form)
        begin_session(self.request, method="password")
        if kept is not None:
            kept_input.store(self.request, kept)
        if isinstance(form, SignInForm):
            response.set_cookie(
                sign_ins.COOKIE,
                sign_ins.cookie_after(form.attempt()),
                max_age=sign_ins.COOKIE_SECONDS,
                path=settings.SESSION_COOKIE_PATH,
                secure=bool(settings.SESSION_COOKIE_SECURE),
                httponly=True,
                samesite="Lax",
            )
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.retry_after_seconds:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(form.retry_after_seconds)
        return response
