"""Set up one's authenticator app, make new recovery codes, remove it."""

from __future__ import annotations

from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.local import password_checks, second_factor, sessions, totp
from portal.accounts.local.new_accounts import MAX_PASSWORD
from portal.accounts.local.session_store import BEGAN
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.service_form import ServiceForm
from portal.ui.sign_in_session import build_attempt


class FirstCodeForm(ServiceForm):
    code = forms.CharField(
        label="Code from the app",
        max_length=10,
        widget=forms.TextInput(attrs={"autocomplete": "one-time-code", "inputmode": "numeric"}),
    )


class PasswordForm(ServiceForm):
    password = forms.CharField(
        label="Your password",
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def set_up(request: HttpRequest, user: User) -> HttpResponse:
    """Set up the authenticator app. POST confirms it with its first code, and shows the recovery codes once."""
    form = FirstCodeForm(request.POST if request.method == "POST" else None)
    codes = form.run(lambda: second_factor.confirm(actor=user, code=form.cleaned_data["code"]))
    if codes is not None:
        # The app is in this person's hands, so this session counts as one with both.
        began = request.session.get(BEGAN, {})
        if began:
            request.session[BEGAN] = {**began, "method": sessions.LOCAL_WITH_CODE}
    return _page(request, user, code=form, codes=codes, status=form.status)


@require_POST
@people_only
def start(request: HttpRequest, user: User) -> HttpResponse:
    second_factor.start(actor=user)
    return redirect("second-factor")


@never_cache
@require_POST
@people_only
def make_codes(request: HttpRequest, user: User) -> HttpResponse:
    form = PasswordForm(request.POST)

    def call() -> list[str]:
        _check(request, user, form)
        return second_factor.make_codes(actor=user)

    codes = form.run(call)
    return _page(request, user, password=form, codes=codes, status=form.status)


@never_cache
@require_POST
@people_only
def remove(request: HttpRequest, user: User) -> HttpResponse:
    form = PasswordForm(request.POST)

    def call() -> bool:
        _check(request, user, form)
        second_factor.remove(actor=user)
        return True

    if form.run(call) is None:
        return _page(request, user, password=form, status=form.status)
    messages.success(request, "Authenticator app removed. Your password alone signs you in.")
    return redirect("security")


@require_POST
@people_only
def remove_of_person(request: HttpRequest, user: User, username: str) -> HttpResponse:
    second_factor.remove_factors(actor=user, username=username)
    messages.success(request, f"{username} signs in with the password alone now.")
    return redirect("admin-person", username=username)


def _check(request: HttpRequest, user: User, form: PasswordForm) -> None:
    """So that whoever finds an open session cannot take the second factor away."""
    attempt = build_attempt(request, user.username)
    password = form.cleaned_data["password"]
    password_checks.require(user, password, attempt=attempt, field="password")


def _page(
    request: HttpRequest,
    user: User,
    *,
    code: FirstCodeForm | None = None,
    password: PasswordForm | None = None,
    codes: list[str] | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    key = second_factor.pending_key(user)
    context = {
        "has_password": user.has_usable_password(),
        "is_on": second_factor.has_app(user),
        "is_required": second_factor.is_missing(user, method=sessions.method_of(request.session)),
        "key": " ".join(key[i : i + 4] for i in range(0, len(key), 4)),
        "picture": totp.picture(totp.address(key, username=user.username)) if key else "",
        "code": code or FirstCodeForm(),
        "password": password or PasswordForm(),
        "codes": codes,
        "codes_left": second_factor.codes_left(user),
    }
    return render(request, "accounts/second_factor.html", context, status=status)
