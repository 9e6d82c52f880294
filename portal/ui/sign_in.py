"""The sign-in page: Django's own, with a limit on failures."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.contrib.auth.forms import AuthenticationForm
from django.contrib.auth.views import LoginView
from django.core.exceptions import ValidationError
from django.http import HttpResponse

from portal.accounts import sign_ins

_TOO_MANY = "too_many_failures"


class SignInForm(AuthenticationForm):
    def clean(self) -> dict[str, Any]:
        username = str(self.cleaned_data.get("username") or "")
        if not username or not self.cleaned_data.get("password"):
            return super().clean()
        address = str(self.request.META.get("REMOTE_ADDR", "")) if self.request else ""
        if not sign_ins.begin(username=username, address=address):
            minutes = sign_ins.WINDOW_SECONDS // 60
            raise ValidationError(
                f"Too many failed sign-ins for this name from here. Wait {minutes} minutes, or "
                "ask a platform admin for a new password.",
                code=_TOO_MANY,
            )
        cleaned = super().clean()
        sign_ins.succeeded(username=username, address=address)
        return cleaned


class SignIn(LoginView):
    template_name = "ui/sign_in.html"
    authentication_form = SignInForm

    def form_invalid(self, form: AuthenticationForm) -> HttpResponse:
        response = super().form_invalid(form)
        if form.has_error("__all__", code=_TOO_MANY):
            response.status_code = HTTPStatus.TOO_MANY_REQUESTS
        return response
