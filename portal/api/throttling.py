"""Requests per minute that the API accepts: of one token or user, and of one unauthenticated address."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from django.conf import settings
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import Throttled
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from portal.core import rate_limits
from portal.core.client_address import client_network
from portal.core.rate_limits import Limit

_MINUTE: Final = 60


def caller_limit() -> Limit:
    return Limit("api of a caller", settings.SLIPWAY_API_REQUESTS_PER_MINUTE, _MINUTE)


def anonymous_limit() -> Limit:
    return Limit("api without a token", settings.SLIPWAY_API_ANONYMOUS_PER_MINUTE, _MINUTE)


class CallerThrottle(BaseThrottle):
    """Per token, else per user, so that a runaway notebook does not block its owner's other scripts."""

    def allow_request(self, request: Request, view: Any) -> bool:
        header = get_authorization_header(request)
        who = hashlib.sha256(header).hexdigest() if header else f"user {request.user.pk}"
        return not request.user.is_authenticated or rate_limits.count(caller_limit(), who)

    def wait(self) -> float:
        return caller_limit().seconds_left()


class AnonymousLimit(BaseAuthentication):
    """Last authenticator in the list, so that it sees only requests without a token or session."""

    def authenticate(self, request: Request) -> None:
        count_anonymous(request)


def count_anonymous(request: Request) -> None:
    """Count an unauthenticated request, including one with an invalid token. Raises Throttled."""
    limit = anonymous_limit()
    if not rate_limits.count(limit, client_network(request._request)):
        raise Throttled(wait=limit.seconds_left())
