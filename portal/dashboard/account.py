"""The user's own API tokens."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import tokens
from portal.accounts.local.step_up import StepUpRequired
from portal.accounts.models import User
from portal.core.errors import DomainError
from portal.dashboard.token_forms import TokenForm
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


@never_cache
@people_only
@require_http_methods(["GET", "POST"])
def token_list(request: HttpRequest, user: User) -> HttpResponse:
    form = TokenForm(user, request.POST if request.method == "POST" else None)
    # `slipway login` links to the page with the scopes that its commands need.
    form.select_scopes(request.GET.get("scopes", ""))
    made = _made(form, user) if request.method == "POST" and form.is_valid() else None
    context = {
        "form": TokenForm(user) if made else form,
        "made": made,
        "tokens": tokens.list_tokens(user),
    }
    return render(request, "dashboard/tokens.html", context, status=422 if form.errors else 200)


@people_only
@require_POST
def revoke_token(request: HttpRequest, user: User, token_id: int) -> HttpResponse:
    tokens.revoke(actor=user, token_id=token_id)
    messages.success(request, "Token revoked. Requests with it are now rejected.")
    return redirect("tokens")


def _made(form: TokenForm, user: User) -> tokens.NewToken | None:
    try:
        return tokens.create(actor=user, **form.values())
    except StepUpRequired:
        raise
    except DomainError as error:
        add_to(form, error)
        return None
