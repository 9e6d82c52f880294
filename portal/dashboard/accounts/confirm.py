"""Confirm that it is still the same person, then go back to what needed it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from portal.accounts import sign_in_events
from portal.accounts.local import passkeys, password_checks, second_factor, step_up
from portal.accounts.models import User
from portal.core import clock
from portal.core.client_address import client_address
from portal.ui import confirm_page, kept_input
from portal.ui.access import people_only
from portal.ui.confirm_page import AnswerForm, ConfirmCodeForm
from portal.ui.second_factor import passkeys as challenges
from portal.ui.sign_in_session import build_attempt


@never_cache
@require_http_methods(["GET", "POST"])
@people_only
def confirm(request: HttpRequest, user: User) -> HttpResponse:
    next_path = _safe_path(request)
    if request.method == "GET":
        form = confirm_page.build_form(user)
        return confirm_page.show(request, user, form=form, next_path=next_path)
    form = confirm_page.build_form(user, request.POST)
    kept = request.POST.get("kept", "")
    if form.run(lambda: _check(request, user, form)) is None:
        return confirm_page.show(
            request, user, form=form, next_path=next_path, kept=kept, status=form.status
        )
    request.session.cycle_key()
    step_up.mark(request.session, clock.now())
    sign_in_events.record_success(user, method="confirmation", address=client_address(request))
    opened = kept_input.read_signed_form(kept)
    if opened is not None:
        kept_input.store(request, opened)
    return redirect(next_path)


def _check(request: HttpRequest, user: User, form: AnswerForm) -> bool:
    answer = form.cleaned_data["answer"]
    if passkey := form.cleaned_data["passkey"]:
        passkeys.require(
            user,
            site=challenges.find_site(request),
            state=challenges.take(request, user),
            answer=passkey,
            address=client_address(request),
        )
    elif isinstance(form, ConfirmCodeForm):
        second_factor.require(user, answer, address=client_address(request))
    else:
        attempt = build_attempt(request, user.username)
        password_checks.require(user, answer, attempt=attempt, field="answer")
    return True


def _safe_path(request: HttpRequest) -> str:
    path = request.POST.get("next") or request.GET.get("next") or "/"
    is_safe = url_has_allowed_host_and_scheme(
        path, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return path if is_safe else "/"
