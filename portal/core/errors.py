"""What can go wrong in words a person can act on.

Every DomainError has a stable `code` (for programs), an HTTP `status`, and a message that names
the thing and the fix. The API renders it as an RFC 9457 problem, pages as a message.
"""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus


class DomainError(Exception):
    code = "error"
    status = HTTPStatus.BAD_REQUEST
    title = "Request failed"

    def __init__(
        self, message: str, *, code: str | None = None, fields: Mapping[str, str] | None = None
    ) -> None:
        """`fields` maps a form or JSON field to what is wrong with it and how to mend it."""
        super().__init__(message)
        self.message = message
        self.code = code or type(self).code
        self.fields = dict(fields or {})


class Invalid(DomainError):
    """The input is wrong; `fields` says where."""

    code = "invalid"
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    title = "Invalid input"


class NotFound(DomainError):
    """Also raised for what the actor may not see: it does not exist for them."""

    code = "not_found"
    status = HTTPStatus.NOT_FOUND
    title = "Not found"


class Forbidden(DomainError):
    """The actor may see the thing but not do this; the message names the rule."""

    code = "forbidden"
    status = HTTPStatus.FORBIDDEN
    title = "Not allowed"


class Conflict(DomainError):
    """The thing changed meanwhile, or its state does not permit this now."""

    code = "conflict"
    status = HTTPStatus.CONFLICT
    title = "The state has changed"


class Stale(DomainError):
    """The change was made conditional on a state that is no longer there."""

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
    """A system that this needs does not answer; trying again later can help."""

    code = "unavailable"
    status = HTTPStatus.SERVICE_UNAVAILABLE
    title = "Temporarily unavailable"
