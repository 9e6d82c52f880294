"""Require a signed-in user for pages and pass it to the view."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from typing import Concatenate, ParamSpec, TypeVar
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme

from portal.accounts.local.step_up import StepUpRequired
from portal.accounts.models import User
from portal.ui import confirm_page, htmx, kept_input
from portal.ui.sign_in import SignInForm

P = ParamSpec("P")
View = TypeVar("View", bound=Callable[..., HttpResponseBase])
_KEEPS_INPUT = "keeps_input"


def keeps_input(view: View) -> View:
    """Mark a view, below `people_only`, that shows and submits its form at one address and through
    `ServiceForm.run` only: input that was posted after the session ended is shown again.
    """
    setattr(view, _KEEPS_INPUT, True)
    return view


def people_only(
    view: Callable[Concatenate[HttpRequest, User, P], HttpResponseBase],
) -> Callable[Concatenate[HttpRequest, P], HttpResponseBase]:
    """Redirect anonymous users to the sign-in page, and back afterwards."""
    is_keeping = getattr(view, _KEEPS_INPUT, False)

    @wraps(view)
    def wrapper(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponseBase:
        if not isinstance(request.user, User):
            return _sign_in_first(request, is_keeping=is_keeping)
        kept = kept_input.take(request)
        try:
            if kept is None or not is_keeping:
                return view(request, request.user, *args, **kwargs)
            with kept_input.showing_again(request, kept):
                return view(request, request.user, *args, **kwargs)
        except StepUpRequired:
            return _confirm_first(request, request.user, is_keeping=is_keeping)

    return wrapper


def _sign_in_first(request: HttpRequest, *, is_keeping: bool) -> HttpResponseBase:
    """Anonymous htmx requests get 401, on which the page shows that the session has ended."""
    if htmx.is_htmx_request(request):
        return HttpResponse(status=HTTPStatus.UNAUTHORIZED)
    if request.method in ("GET", "HEAD"):
        return redirect_to_login(request.get_full_path())
    kept = kept_input.sign_form(request) if is_keeping else ""
    if not kept:
        return redirect_to_login(_page_of_form(request))
    context = {
        "form": SignInForm(request),
        "next": request.get_full_path(),
        "kept": kept,
        "providers": settings.SLIPWAY_OIDC,
    }
    response = render(request, "ui/sign_in.html", context, status=HTTPStatus.UNAUTHORIZED)
    response["Cache-Control"] = "no-store"
    return response


def _confirm_first(request: HttpRequest, user: User, *, is_keeping: bool) -> HttpResponse:
    """Redirect to the page that confirms, and back with what was typed."""
    sealed = kept_input.sign_form(request, why=confirm_page.MESSAGE) if is_keeping else ""
    if not sealed or htmx.is_htmx_request(request):
        query = urlencode({"next": _page_of_form(request)})
        return htmx.redirect(request, f"{reverse('confirm')}?{query}")
    return confirm_page.show(
        request,
        user,
        form=confirm_page.build_form(user),
        next_path=request.get_full_path(),
        kept=sealed,
        status=HTTPStatus.FORBIDDEN,
    )


def _page_of_form(request: HttpRequest) -> str:
    """The page with the form: the posted address may not accept GET."""
    page = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(page, allowed_hosts={request.get_host()}):
        return "/"
    parts = urlsplit(page)
    return f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
