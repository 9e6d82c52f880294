"""Requests per minute that the API accepts: of one token or user, and of one unauthenticated address."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.accounts.scopes import TokenGrant
from portal.core import rate_limits
from portal.core.client_address import client_network
from portal.core.definitions.counts import format_count
from portal.core.rate_limits import Limit

_MINUTE: Final = 60


def caller_limit(own: int | None = None) -> Limit:
    """`own` is the limit of the token, where it has one; the platform's is the most."""
    most: int = settings.SLIPWAY_API_REQUESTS_PER_MINUTE
    return Limit("api of a caller", min(most, own) if own else most, _MINUTE)


def anonymous_limit() -> Limit:
    return Limit("api without a token", settings.SLIPWAY_API_ANONYMOUS_PER_MINUTE, _MINUTE)


class CallerThrottle(BaseThrottle):
    """A limit of requests per token, or else per user, so that a runaway notebook does not block its owner's other
    scripts.
    """

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.user.is_authenticated:
            count_caller(request)
        return True


def count_caller(request: Request) -> None:
    """Count a request of a token, else of a signed-in person. Raises Throttled."""
    limit, grant = caller_limit(), request.auth
    who, caller = f"user {request.user.pk}", "You"
    if isinstance(grant, TokenGrant):
        limit = caller_limit(grant.requests_per_minute)
        who, caller = f"token {grant.token_id}", f"The token “{grant.name}”"
    if not rate_limits.count(limit, who):
        raise Throttled(
            wait=limit.seconds_left(),
            detail=f"{caller} sent more than {format_count(limit.max_count, 'request')} in this minute.",
        )


class AnonymousLimit(BaseAuthentication):
    """A limit of anonymous requests: the last authenticator in the list, so that it sees only requests without a
    token or session.
    """

    def authenticate(self, request: Request) -> None:
        count_anonymous(request)


def count_anonymous(request: Request) -> None:
    """Count an unauthenticated request, including one with an invalid token. Raises Throttled."""
    limit = anonymous_limit()
    if not rate_limits.count(limit, client_network(request)):
        raise Throttled(wait=limit.seconds_left())
