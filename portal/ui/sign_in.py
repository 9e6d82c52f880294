"""Django's sign-in page with limits on failures."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpResponse

from portal.accounts import sign_in_events, sign_ins
from portal.accounts.local import second_factor
from portal.accounts.local.sessions import LOCAL
from portal.accounts.sign_ins import Attempt
from portal.ui import kept_input, sign_in_code
from portal.ui.sign_in_session import build_attempt, finish

_TOO_MANY = "too_many_failures"
_BUSY_SECONDS = 10


class SignInForm(AuthenticationForm):
    retry_after_seconds = 0

    def attempt(self) -> Attempt:
        username = str(self.cleaned_data.get("username") or "")
        if self.request is None:
            return Attempt(username, "")
        return build_attempt(self.request, username)

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
            cleaned = self._check_password(attempt)
        sign_ins.record_success(attempt)
        return cleaned

    def _check_password(self, attempt: Attempt) -> dict[str, Any]:
        try:
            return super().clean()
        except ValidationError:
            sign_in_events.record_refusal(
                attempt.username, reason=sign_in_events.Reason.PASSWORD, address=attempt.address
            )
            raise

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
        user = form.get_user()
        kept = kept_input.read_signed_form(self.request.POST.get("kept", ""))
        next_path = self.get_success_url()
        if second_factor.is_on(user):
            response = sign_in_code.ask(self.request, user, next_path=next_path)
        else:
            response = finish(self.request, user, method=LOCAL, next_path=next_path)
        if kept is not None:
            kept_input.store(self.request, kept)
        return response

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if isinstance(form, SignInForm) and form.retry_after_seconds:
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
            response["Retry-After"] = str(form.retry_after_seconds)
        return response
