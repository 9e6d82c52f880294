"""The page that an invitation leads to: choose a username and a password."""

from __future__ import annotations

from typing import Final

from django import forms
from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_safe

from portal.accounts.local import invitations, links
from portal.accounts.local.links import LinkDead
from portal.accounts.local.models import Invitation
from portal.accounts.local.sessions import LOCAL
from portal.accounts.models import User
from portal.core import clock
from portal.dashboard.accounts.password_fields import NewPasswordForm
from portal.ui.sign_in_session import begin_session

_SESSION_KEY: Final = "opened_invitation"


class AcceptForm(NewPasswordForm):
    username = forms.CharField(
        max_length=150,
        help_text="You sign in with it. It can't be changed later.",
        widget=forms.TextInput(
            attrs={"autocomplete": "username", "autocapitalize": "none", "spellcheck": "false"}
        ),
    )
    field_order = ("username", "password", "repeated")


@never_cache
@require_safe
def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Redirect to an address without the token: browsers, logs and histories keep addresses."""
    request.session[_SESSION_KEY] = links.digest_of(token)
    response = redirect("invitation")
    response["Referrer-Policy"] = "no-referrer"
    return response


@never_cache
@require_http_methods(["GET", "POST"])
def accept(request: HttpRequest) -> HttpResponse:
    """Accept an invitation. GET uses nothing up: chat and mail programs open links automatically."""
    digest = str(request.session.get(_SESSION_KEY, ""))
    try:
        invitation = invitations.find(digest)
        if isinstance(request.user, User):
            return render(request, "accounts/signed_in_already.html", {"invitation": invitation})
        form = AcceptForm(
            request.POST if request.method == "POST" else None,
            initial={"username": invitation.email.partition("@")[0]},
        )
        return _answer(request, invitation, form)
    except LinkDead as error:
        return render(request, "accounts/link_dead.html", {"error": error}, status=error.status)


def _answer(request: HttpRequest, found: Invitation, form: AcceptForm) -> HttpResponse:
    user = form.run(
        lambda: invitations.accept(
            digest=found.digest,
            username=form.cleaned_data["username"],
            password=form.cleaned_data["password"],
        )
    )
    if user is None:
        context = {"invitation": found, "form": form}
        return render(request, "accounts/invitation.html", context, status=form.status)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    begin_session(request, method=LOCAL, authenticated_at=clock.now())
    return redirect("home")
