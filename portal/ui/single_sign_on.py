"""Sign-in with an OpenID Connect provider: to the provider and back."""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

from django.conf import settings
from django.contrib.auth import login
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render, resolve_url
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from portal.accounts import sign_in_events
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.oidc import confirmation, gateway, sign_in
from portal.accounts.oidc.errors import SignInRefused
from portal.accounts.oidc.gateway import Answer
from portal.accounts.oidc.providers import Provider
from portal.core import rate_limits
from portal.core.client_address import client_address, client_network
from portal.core.errors import DomainError, NotFound
from portal.core.rate_limits import Limit
from portal.ui.sign_in_session import begin_session

# A whole office may have one address. A sign-in counts twice and costs the provider five requests.
_OF_ADDRESS: Final = Limit("single sign-on from an address", 600, 15 * 60)


@never_cache
@require_GET
def begin(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Begin a sign-in by a link and no form: the page's content policy lets no form lead to another site."""
    provider = gateway.provider_named(provider_id)
    if not rate_limits.count(_OF_ADDRESS, client_network(request)):
        return _too_many(request)
    try:
        path = _safe_path(request, request.GET.get("next", ""))
        is_confirming = "confirm" in request.GET and isinstance(request.user, User)
        confirms = request.user.pk if is_confirming else None
        return gateway.begin(request, provider, path, confirms=confirms)
    except DomainError as error:
        return _problem(request, error, provider_id)


@never_cache
@require_GET
def callback(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Sign in only what this browser began; a new session replaces the old one."""
    provider = gateway.provider_named(provider_id)
    if not rate_limits.count(_OF_ADDRESS, client_network(request)):
        return _too_many(request)
    try:
        answer = gateway.finish(request, provider)
        if answer.confirms is not None:
            return _confirmed(request, provider, answer)
        user = sign_in.sign_in(provider, answer.claims)
    except NotFound:
        raise
    except DomainError as error:
        return _problem(request, error, provider_id)
    login(request, user, backend=settings.AUTHENTICATION_BACKENDS[0])
    begin_session(
        request,
        method=provider.label,
        authenticated_at=confirmation.read_sign_in_time(answer.claims),
    )
    path = _safe_path(request, answer.next_path)
    return redirect(path or resolve_url(settings.LOGIN_REDIRECT_URL))


def _confirmed(request: HttpRequest, provider: Provider, answer: Answer) -> HttpResponse:
    """The session goes on, in which the same person has just signed in at the provider again."""
    user = request.user
    if not isinstance(user, User) or user.pk != answer.confirms:
        raise SignInRefused(
            "You were signed out before you confirmed, or someone else signed in here.",
            code="another_person",
        )
    confirmation.check(provider, answer.claims, user=user)
    sign_in.sign_in(provider, answer.claims)
    request.session.cycle_key()
    step_up.mark(request.session, confirmation.read_sign_in_time(answer.claims))
    sign_in_events.record_success(
        user, method=f"confirmation by {provider.label}", address=client_address(request)
    )
    return redirect(_safe_path(request, answer.next_path) or "/")


def _safe_path(request: HttpRequest, path: str) -> str:
    """Return the path if it is safe to redirect to. Empty if it leads to another site."""
    is_safe = url_has_allowed_host_and_scheme(
        path, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    )
    return path if is_safe else ""


def _too_many(request: HttpRequest) -> HttpResponse:
    seconds = _OF_ADDRESS.seconds_left()
    error = DomainError("Too many people are signing in from your network. Try again in a while.")
    error.title = "Too many sign-ins"
    response = _render(request, error, "", HTTPStatus.TOO_MANY_REQUESTS)
    response["Retry-After"] = str(seconds)
    return response


def _problem(request: HttpRequest, error: DomainError, provider_id: str) -> HttpResponse:
    return _render(request, error, provider_id, error.status)


def _render(
    request: HttpRequest, error: DomainError, provider_id: str, status: int
) -> HttpResponse:
    context = {"error": error, "provider_id": provider_id}
    return render(request, "ui/sign_in_problem.html", context, status=status)
