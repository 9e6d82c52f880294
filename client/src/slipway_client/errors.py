"""Errors with messages that people can act on.

The portal refuses with problem documents (RFC 9457). Each becomes an `ApiError` of the class of its
status; `fields` says which field of the request is wrong and how to fix it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class SlipwayError(Exception):
    """Base of everything that this package raises on purpose."""


class NotLoggedIn(SlipwayError):
    """No address or no token of a portal is known."""


class ConnectionFailed(SlipwayError):
    """The server did not answer, also after retries."""


class UnexpectedAnswer(SlipwayError):
    """The server answered with something that is not Slipway's API."""


class WaitTimedOut(SlipwayError):
    """Something did not reach its state in time; it may still do."""


class Failed(SlipwayError):
    """A wait ended in another way than expected; the message has the portal's reason."""


class InvalidInput(SlipwayError):
    """Something was refused before it was sent."""


class ApiError(SlipwayError):
    """The portal refused a request. `code` is stable and meant for programs."""

    def __init__(self, status: int, problem: Mapping[str, Any]) -> None:
        self.status = status
        self.code = str(problem.get("code", ""))
        self.title = str(problem.get("title", ""))
        self.detail = str(problem.get("detail", "")) or self.title or f"status {status}"
        self.fields: dict[str, str] = {
            str(error.get("field", "")): str(error.get("detail", ""))
            for error in problem.get("errors") or ()
        }
        super().__init__(self._message())

    def _message(self) -> str:
        """Return the detail, and each field that it does not name."""
        lines = [f"  {name}: {fix}" for name, fix in self.fields.items() if fix not in self.detail]
        return "\n".join([self.detail, *lines])


class InvalidRequest(ApiError):
    """400, 413, 415 and 422: see `fields`."""


class TokenRefused(ApiError):
    """401: the token is missing, revoked or expired."""


class Forbidden(ApiError):
    """403: the token's owner may not do this."""


class NotFound(ApiError):
    """404: it does not exist, or the token's owner may not see it."""


class Conflict(ApiError):
    """409: the state does not permit it now."""


class Stale(ApiError):
    """412: it changed in the meantime."""


class TooManyRequests(ApiError):
    """429, also after waiting."""


class ServerError(ApiError):
    """5xx, also after retries."""


_BY_STATUS: dict[int, type[ApiError]] = {
    401: TokenRefused,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    412: Stale,
    429: TooManyRequests,
}


def build_error(status: int, problem: Mapping[str, Any]) -> ApiError:
    default = ServerError if status >= 500 else InvalidRequest
    return _BY_STATUS.get(status, default)(status, problem)
