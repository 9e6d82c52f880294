"""Errors with messages that users can act on.

Every DomainError has a stable `code` for programs, an HTTP `status`, and a message that names the
object and the fix. The API renders it as an RFC 9457 problem, pages as a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus


class DomainError(Exception):
    code = "error"
    status = HTTPStatus.BAD_REQUEST
    title = "Request failed"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        fields: Mapping[str, str] | None = None,
        retry_after_seconds: int = 0,
    ) -> None:
        """`fields` maps a form or JSON field to its problem and the fix. A request that is repeated
        after `retry_after_seconds` can succeed; 0 says nothing.
        """
        super().__init__(message)
        self.message = message
        self.retry_after_seconds = retry_after_seconds
        self.code = code or type(self).code
        self.fields = dict(fields or {})


class Invalid(DomainError):
    """The input is invalid; `fields` says where."""

    code = "invalid"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = "Invalid input"


class NotFound(DomainError):
    """An object does not exist. Also raised for objects that the actor may not see."""

    code = "not_found"
    status = HTTPStatus.NOT_FOUND
    title = "Not found"


class Forbidden(DomainError):
    """The actor may see the object but not do this; the message names the rule."""

    code = "forbidden"
    status = HTTPStatus.FORBIDDEN
    title = "Not allowed"


class Conflict(DomainError):
    """The object changed in the meantime, or its state does not permit this now."""

    code = "conflict"
    status = HTTPStatus.CONFLICT
    title = "The state has changed"


class AlreadyDone(Conflict):
    """Somebody did it before. Pages say so, and show how it is now instead of an error."""


class Stale(DomainError):
    """The precondition of a conditional change no longer holds."""

    code = "stale"
    status = HTTPStatus.PRECONDITION_FAILED
    title = "Changed in the meantime"


class TooLarge(DomainError):
    code = "too_large"
    status = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    title = "Request too large"


class QuotaExceeded(DomainError):
    code = "quota_exceeded"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = "Quota exceeded"


class Unavailable(DomainError):
    """A system that this needs does not respond; a retry can help."""

    code = "unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Temporarily unavailable"
