"""`Authorization: Bearer slp_…` for notebooks, scripts and CI, and the scope that an operation needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.accounts import operations, scopes, tokens
from portal.accounts.models import User
from portal.accounts.scopes import TokenGrant
from portal.api import throttling
from portal.core.errors import Forbidden

if TYPE_CHECKING:
    from rest_framework.views import APIView


class TokenRefused(AuthenticationFailed):
    """Carries the code of the problem, which tells an expired token from an unknown one."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.default_code = code


class TokenAuthentication(BaseAuthentication):
    def authenticate(self, request: Request) -> tuple[User, TokenGrant | None] | None:
        parts = get_authorization_header(request).decode("latin-1").split()
        if len(parts) != 2 or parts[0].lower() != "bearer":
            return None
        user = tokens.user_of(parts[1])
        if user is None:
            throttling.count_anonymous(request)
            raise TokenRefused(*tokens.explain_refusal(parts[1]))
        return user, user.grant

    def authenticate_header(self, request: Request) -> str:
        return 'Bearer realm="slipway"'


class TokenScope(BasePermission):
    """Whether the token of a request has the scope of the operation. Raises Forbidden that names it."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        grant, match = request.auth, request.resolver_match
        if not isinstance(grant, TokenGrant) or match is None:
            return True
        needed = operations.scope_of(request.method or "", match.route)
        try:
            scopes.require(grant, needed, what="do this")
        except Forbidden:
            # DRF counts what it lets in, and this is counted as well.
            throttling.count_caller(request)
            raise
        return True
