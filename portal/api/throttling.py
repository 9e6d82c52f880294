"""How many requests the API takes in a minute: of one token or person, and of one address that has
shown neither.
"""

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


def of_caller() -> Limit:
    return Limit("api of a caller", settings.SLIPWAY_API_REQUESTS_PER_MINUTE, _MINUTE)


def of_nobody() -> Limit:
    return Limit("api without a token", settings.SLIPWAY_API_ANONYMOUS_PER_MINUTE, _MINUTE)


class CallerThrottle(BaseThrottle):
    """By token, else by person: a runaway notebook does not hold up its owner's other scripts."""

    def allow_request(self, request: Request, view: Any) -> bool:
        header = get_authorization_header(request)
        who = hashlib.sha256(header).hexdigest() if header else f"user {request.user.pk}"
        return not request.user.is_authenticated or rate_limits.count(of_caller(), who)

    def wait(self) -> float:
        return of_caller().seconds_left()


class AnonymousLimit(BaseAuthentication):
    """Last in the list, so that it is asked only about requests without a token or a session."""

    def authenticate(self, request: Request) -> None:
        count_nobody(request)


def count_nobody(request: Request) -> None:
    """Also of tokens that are none: else making them up would be free. Raises Throttled."""
    limit = of_nobody()
    if not rate_limits.count(limit, client_network(request._request)):
        raise Throttled(wait=limit.seconds_left())
