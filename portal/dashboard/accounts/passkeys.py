"""One's own passkeys: add one, remove one."""

from __future__ import annotations

from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts.local import passkeys, password_checks, sessions
from portal.accounts.local.new_accounts import MAX_PASSWORD
from portal.accounts.local.session_store import BEGAN
from portal.accounts.models import User
from portal.ui.access import people_only
from portal.ui.second_factor import passkeys as challenges
from portal.ui.service_form import ServiceForm
from portal.ui.sign_in_session import build_attempt


class _PasswordForm(ServiceForm):
    password = forms.CharField(
        label="Your password",
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )


class NewPasskeyForm(_PasswordForm):
    """The form that adds a passkey. `passkey` is the browser's answer, as JSON."""

    name = forms.CharField(
        max_length=passkeys.LONGEST_NAME,
        help_text="For example “Work laptop” or “YubiKey”.",
    )
    passkey = forms.CharField(required=False, widget=forms.HiddenInput)
    field_order = ("name", "password", "passkey")


class RemovePasskeyForm(_PasswordForm):
    passkey = forms.IntegerField(widget=forms.HiddenInput)


@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def passkey_list(request: HttpRequest, user: User) -> HttpResponse:
    """Show the passkeys. POST adds one."""
    form = NewPasskeyForm(request.POST if request.method == "POST" else None)
    codes = form.run(lambda: _add(request, user, form))
    if codes is not None:
        _count_as_second_factor(request)
        messages.success(request, "Passkey added.")
        if not codes:
            return redirect("passkeys")
    return _page(request, user, form=form, codes=codes, status=form.status)


@never_cache
@require_POST
@people_only
def begin(request: HttpRequest, user: User) -> HttpResponse:
    """Return what the browser needs to create a passkey."""
    challenge = passkeys.begin_adding(actor=user, site=challenges.find_site(request))
    return JsonResponse(challenges.keep(request, user, challenge))


@never_cache
@require_POST
@people_only
def remove(request: HttpRequest, user: User) -> HttpResponse:
    form = RemovePasskeyForm(request.POST)

    def call() -> bool:
        _check(request, user, form)
        passkeys.remove(actor=user, passkey_id=form.cleaned_data["passkey"])
        return True

    if form.run(call) is None:
        return _page(request, user, removal=form, status=form.status)
    messages.success(request, "Passkey removed. It can no longer be used to sign in.")
    return redirect("passkeys")


def _add(request: HttpRequest, user: User, form: NewPasskeyForm) -> list[str]:
    state = challenges.take(request, user)
    _check(request, user, form)
    return passkeys.add(
        actor=user,
        site=challenges.find_site(request),
        state=state,
        answer=form.cleaned_data["passkey"],
        name=form.cleaned_data["name"],
    )


def _check(request: HttpRequest, user: User, form: _PasswordForm) -> None:
    """So that whoever finds an open session neither adds nor removes a factor."""
    attempt = build_attempt(request, user.username)
    password = form.cleaned_data["password"]
    password_checks.require(user, password, attempt=attempt, field="password")


def _count_as_second_factor(request: HttpRequest) -> None:
    """The passkey was used just now, so this session counts as one with both."""
    began = request.session.get(BEGAN, {})
    if began:
        request.session[BEGAN] = {**began, "method": sessions.LOCAL_WITH_PASSKEY}


def _page(
    request: HttpRequest,
    user: User,
    *,
    form: NewPasskeyForm | None = None,
    removal: RemovePasskeyForm | None = None,
    codes: list[str] | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """Passwords and answers are never sent back."""
    context = {
        "passkeys": passkeys.list_passkeys(user),
        "form": form or NewPasskeyForm(),
        "removal": removal,
        "codes": codes,
        "has_password": user.has_usable_password(),
    }
    return render(request, "accounts/passkeys.html", context, status=status)
