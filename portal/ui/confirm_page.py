"""The page on which a person confirms that it is still them."""

from __future__ import annotations

import json

from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from portal.accounts.local import second_factor
from portal.accounts.local.new_accounts import MAX_PASSWORD
from portal.accounts.models import User
from portal.ui import kept_input
from portal.ui.second_factor import passkeys as challenges
from portal.ui.second_factor.passkey_form import PasskeyForm

MESSAGE = "Confirmed. Nothing was sent yet: check what you typed and send it again."


class AnswerForm(PasskeyForm):
    typed = "answer"


class ConfirmPasswordForm(AnswerForm):
    answer = forms.CharField(
        label="Your password",
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password", "autofocus": True}),
    )


class ConfirmCodeForm(AnswerForm):
    answer = forms.CharField(
        label="Code",
        max_length=40,
        help_text="Six digits from your authenticator app, or one of your recovery codes.",
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "autofocus": True}),
    )
    renamed = {"code": "answer"}


def build_form(user: User, data: object = None) -> AnswerForm:
    kind = ConfirmCodeForm if second_factor.is_on(user) else ConfirmPasswordForm
    return kind(data)


def show(
    request: HttpRequest,
    user: User,
    *,
    form: AnswerForm,
    next_path: str,
    kept: str = "",
    status: int = 200,
) -> HttpResponse:
    """Show the page that confirms. `kept` is the sealed input of the form that needs the confirmation."""
    has_password = user.has_usable_password()
    names = set(user.identities.values_list("provider", flat=True))
    if kept and not has_password and (opened := kept_input.read_signed_form(kept)) is not None:
        # The way over a provider carries no form.
        kept_input.store(request, opened)
    options = challenges.ask_for_proof(request, user)
    context = {
        "form": form,
        "next": next_path,
        "kept": kept,
        "has_password": has_password,
        "providers": [row for row in settings.SLIPWAY_OIDC if row.name in names],
        "passkey_options": json.dumps(dict(options)) if options else "",
        "minutes": settings.SLIPWAY_STEP_UP_MINUTES,
    }
    response = render(request, "accounts/confirm.html", context, status=status)
    response["Cache-Control"] = "no-store"
    return response
