"""The second step of a sign-in: a code of the authenticator app, or a recovery code."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any, Final

from django import forms
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.crypto import constant_time_compare
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts.local import passkeys, second_factor
from portal.accounts.local.sessions import LOCAL_WITH_CODE, LOCAL_WITH_PASSKEY
from portal.accounts.models import User
from portal.core import clock
from portal.core.client_address import client_address
from portal.ui.second_factor import passkeys as challenges
from portal.ui.second_factor.passkey_form import PasskeyForm
from portal.ui.sign_in_session import SECOND_STEP, finish

_LIVES: Final = timedelta(minutes=10)


class CodeForm(PasskeyForm):
    typed = "code"

    code = forms.CharField(
        max_length=40,
        help_text="Six digits from your authenticator app, or one of your recovery codes.",
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}
        ),
    )


def ask(request: HttpRequest, user: User, *, next_path: str) -> HttpResponse:
    """Remember, in a new session, that the password was right. Nobody is signed in by it."""
    request.session.cycle_key()
    request.session[SECOND_STEP] = {
        "user": user.pk,
        "hash": user.get_session_auth_hash(),
        "at": clock.now().isoformat(),
        "next": next_path,
    }
    return redirect("sign-in-code")


@never_cache
@require_http_methods(["GET", "POST"])
def enter(request: HttpRequest) -> HttpResponse:
    waiting = request.session.get(SECOND_STEP)
    user = _person(waiting) if waiting else None
    if waiting is None or user is None:
        request.session.pop(SECOND_STEP, None)
        return redirect("sign-in")
    form = CodeForm(request.POST if request.method == "POST" else None)
    method = form.run(lambda: _check(request, user, form)) if form.is_bound else None
    if method is not None:
        del request.session[SECOND_STEP]
        return finish(request, user, method=method, next_path=waiting["next"])
    options = challenges.ask_for_proof(request, user)
    context = {
        "form": form,
        "person": user,
        "has_app": second_factor.has_app(user),
        "passkey_options": json.dumps(dict(options)) if options else "",
    }
    status = form.status
    return render(request, "accounts/code.html", context, status=status)


def _check(request: HttpRequest, user: User, form: CodeForm) -> str:
    """Check the second factor and return how the person proved it. Raises Invalid."""
    address = client_address(request)
    if answer := form.cleaned_data["passkey"]:
        state = challenges.take(request, user)
        site = challenges.find_site(request)
        passkeys.require(user, site=site, state=state, answer=answer, address=address)
        return LOCAL_WITH_PASSKEY
    second_factor.require(user, form.cleaned_data["code"], address=address)
    return LOCAL_WITH_CODE


def _person(waiting: dict[str, Any]) -> User | None:
    """Return the person who waits for the code. None if too much time has passed, or the account has changed since
    the first step.
    """
    if clock.now() - datetime.fromisoformat(waiting["at"]) > _LIVES:
        return None
    user = User.objects.filter(pk=waiting["user"], is_active=True).first()
    if user is None or not constant_time_compare(waiting["hash"], user.get_session_auth_hash()):
        return None
    return user
