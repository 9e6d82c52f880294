"""One's own sign-in: password and sessions."""

from __future__ import annotations

from http import HTTPStatus

from django import forms
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from portal.accounts import four_eyes
from portal.accounts.local import passkeys, passwords, second_factor, sessions, step_up
from portal.accounts.local.new_accounts import MAX_PASSWORD
from portal.accounts.models import User
from portal.core import clock
from portal.dashboard.accounts.password_fields import NewPasswordForm
from portal.ui.access import people_only
from portal.ui.sign_in_session import build_attempt


class ChangePasswordForm(NewPasswordForm):
    current = forms.CharField(
        label="Current password",
        max_length=MAX_PASSWORD,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    field_order = ("current", "password", "repeated")


@never_cache
@require_GET
@people_only
def security_page(request: HttpRequest, user: User) -> HttpResponse:
    return render_page(request, user)


@never_cache
@require_POST
@people_only
def change_password(request: HttpRequest, user: User) -> HttpResponse:
    form = ChangePasswordForm(request.POST)
    is_changed = form.run(lambda: _change(request, user, form))
    if is_changed is None:
        return render_page(request, user, form=form, status=form.status)
    # Before the redirect: the session's hash of the password is the old one.
    update_session_auth_hash(request, user)
    step_up.mark(request.session, clock.now())
    messages.success(request, "Password changed. Your other sessions have ended.")
    return redirect("security")


def _change(request: HttpRequest, user: User, form: ChangePasswordForm) -> bool:
    passwords.change(
        actor=user,
        current=form.cleaned_data["current"],
        new=form.cleaned_data["password"],
        attempt=build_attempt(request, user.username),
        session_key=request.session.session_key or "",
    )
    return True


@require_POST
@people_only
def end_session(request: HttpRequest, user: User, name: str) -> HttpResponse:
    sessions.end(actor=user, name=name)
    messages.success(request, "Session ended.")
    return redirect("security")


@require_POST
@people_only
def end_other_sessions(request: HttpRequest, user: User) -> HttpResponse:
    count = sessions.end_others(actor=user, current_key=request.session.session_key)
    messages.success(request, f"Ended {count} {'session' if count == 1 else 'sessions'}.")
    return redirect("security")


def render_page(
    request: HttpRequest,
    user: User,
    *,
    form: ChangePasswordForm | None = None,
    status: int = HTTPStatus.OK,
) -> HttpResponse:
    """Render the page. A refused form shows its errors; passwords are never sent back."""
    context = {
        "sessions": sessions.list_sessions(user, current_key=request.session.session_key),
        "form": form or ChangePasswordForm(),
        "has_password": user.has_usable_password(),
        "has_factor": second_factor.has_app(user),
        "passkeys": passkeys.list_passkeys(user),
        "holds": four_eyes.list_counterparts(user),
        "codes_left": second_factor.codes_left(user),
    }
    return render(request, "accounts/security.html", context, status=status)
