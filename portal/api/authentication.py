"""`Authorization: Bearer slp_…` for notebooks and scripts."""

from __future__ import annotations

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from portal.accounts import tokens
from portal.accounts.models import User
from portal.api import throttling


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, None] | None:
        parts = get_authorization_header(request).decode("latin-1").split()
        if len(parts) != 2 or parts[0].lower() != "bearer":
            return None
        user = tokens.user_of(parts[1])
        if user is None:
            throttling.count_anonymous(request)
            raise AuthenticationFailed(
                "The token is unknown, expired or revoked. Create one in the user menu under API tokens."
            )
        return user, None

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="slipway"'
