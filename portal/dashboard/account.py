"""The user's own API tokens."""

from __future__ import annotations

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST

from portal.accounts import tokens
from portal.accounts.models import User
from portal.core.errors import Invalid
from portal.ui.access import people_only
from portal.ui.form_errors import add_to


class TokenForm(forms.Form):
    name = forms.CharField(
        max_length=80,
        help_text="Where the token is used, so that you know what stops when you revoke it.",
    )
    days = forms.IntegerField(
        label="Lifetime", initial=90, help_text="1 to 365 days.", min_value=1, max_value=365
    )


@never_cache
@people_only
@require_http_methods(["GET", "POST"])
def token_list(request: HttpRequest, user: User) -> HttpResponse:
    form = TokenForm(request.POST if request.method == "POST" else None)
    made = _made(form, user) if request.method == "POST" and form.is_valid() else None
    context = {
        "form": TokenForm() if made else form,
        "made": made,
        "tokens": tokens.list_of(user),
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
        return tokens.create(
            actor=user, name=form.cleaned_data["name"], days=form.cleaned_data["days"]
        )
    except Invalid as error:
        add_to(form, error)
        return None
