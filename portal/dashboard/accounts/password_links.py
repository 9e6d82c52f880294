"""A new password by a link: requested on the sign-in page, or made by a platform admin."""

from __future__ import annotations

from typing import Final

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from portal.accounts.local import links, passwords
from portal.accounts.local.links import LinkDead
from portal.accounts.models import User
from portal.core.client_address import client_network
from portal.dashboard import people
from portal.dashboard.accounts import shown_links
from portal.dashboard.accounts.password_fields import NewPasswordForm
from portal.ui.access import people_only

_SESSION_KEY: Final = "opened_password_link"


class ForgottenForm(forms.Form):
    email = forms.EmailField(
        label="E-mail address",
        max_length=254,
        widget=forms.EmailInput(attrs={"autocomplete": "email"}),
    )


@never_cache
@require_http_methods(["GET", "POST"])
def request_password_link(request: HttpRequest) -> HttpResponse:
    """Request a password link. The response is the same whether or not anybody has the address."""
    form = ForgottenForm(request.POST if request.method == "POST" else None)
    is_sent = False
    if links.can_mail() and form.is_valid():
        passwords.request_by_mail(email=form.cleaned_data["email"], network=client_network(request))
        is_sent = True
    context = {"form": form, "is_sent": is_sent, "has_mail": links.can_mail()}
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "accounts/forgotten.html", context, status=status)


@never_cache
@require_safe
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect to an address without the token: browsers, logs and histories keep addresses."""
    request.session[_SESSION_KEY] = links.digest_of(token)
    response = redirect("password-link")
    response["Referrer-Policy"] = "no-referrer"
    return response


@never_cache
@require_http_methods(["GET", "POST"])
def choose(request: HttpRequest) -> HttpResponse:
    digest = str(request.session.get(_SESSION_KEY, ""))
    form = NewPasswordForm(request.POST if request.method == "POST" else None)
    try:
        link = passwords.find(digest)
        user = form.run(
            lambda: passwords.choose(digest=digest, password=form.cleaned_data["password"])
        )
    except LinkDead as error:
        return render(request, "accounts/link_dead.html", {"error": error}, status=error.status)
    if user is None:
        context = {"form": form, "person": link.user}
        return render(request, "accounts/new_password.html", context, status=form.status)
    request.session.flush()
    messages.success(request, "Password changed. Sign in with it.")
    return redirect("sign-in")


@never_cache
@require_POST
@people_only
def make(request: HttpRequest, user: User, username: str) -> HttpResponse:
    made = passwords.make_link(actor=user, username=username)
    shown = shown_links.build_shown_link(
        request, made.row, path=made.path, title=f"Password link for {username}"
    )
    return people.render_person(request, user, username, link=shown)
