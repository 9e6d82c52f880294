"""Why a sign-in with a provider does not succeed. Messages are for the person who signs in."""

from __future__ import annotations

from http import HTTPStatus

from portal.core.errors import DomainError, Unavailable


class SignInRefused(DomainError):
    """A sign-in was refused. Nothing was changed."""

    code = "sign_in_refused"
    status = HTTPStatus.FORBIDDEN
    title = "You are not signed in"


class ProviderUnavailable(Unavailable):
    code = "provider_unavailable"
    title = "Sign-in is not available"
