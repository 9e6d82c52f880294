"""API errors, rendered to clients as Kubernetes `Status` objects."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

JsonObject = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cause:
    """One invalid field of a refused object, or without a field another reason of a refusal."""

    reason: str
    message: str
    field: str = ""

    def as_json(self) -> JsonObject:
        named = {"field": self.field} if self.field else {}
        return {"reason": self.reason, "message": self.message, **named}


class ApiError(Exception):
    """A refusal with an HTTP status and a machine-readable Kubernetes reason."""

    def __init__(
        self,
        status: int,
        reason: str,
        message: str,
        *,
        details: JsonObject | None = None,
        causes: Sequence[Cause] = (),
    ) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.details = details or {}
        self.causes = tuple(causes)

    def as_status(self) -> JsonObject:
        body: JsonObject = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "code": self.status,
        }
        if self.reason:
            body["reason"] = self.reason
        details = dict(self.details)
        if self.causes:
            details["causes"] = [cause.as_json() for cause in self.causes]
        if details:
            body["details"] = details
        return body


class BadRequest(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(400, "BadRequest", message)


class Unauthorized(ApiError):
    def __init__(self, message: str = "Unauthorized") -> None:
        super().__init__(401, "Unauthorized", message)


class Forbidden(ApiError):
    def __init__(self, message: str, *, details: JsonObject | None = None) -> None:
        super().__init__(403, "Forbidden", message, details=details)


class NotFound(ApiError):
    def __init__(self, message: str, *, details: JsonObject | None = None) -> None:
        super().__init__(404, "NotFound", message, details=details)


class MethodNotAllowed(ApiError):
    def __init__(
        self, message: str = "the server does not allow this method on the requested resource"
    ) -> None:
        super().__init__(405, "MethodNotAllowed", message)


class AlreadyExists(ApiError):
    def __init__(self, message: str, *, details: JsonObject | None = None) -> None:
        super().__init__(409, "AlreadyExists", message, details=details)


class Conflict(ApiError):
    def __init__(
        self, message: str, *, details: JsonObject | None = None, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(409, "Conflict", message, details=details, causes=causes)


class Gone(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(410, "Expired", message)


class UnsupportedMediaType(ApiError):
    def __init__(self, message: str) -> None:
        super().__init__(415, "UnsupportedMediaType", message)


class Invalid(ApiError):
    def __init__(
        self, message: str, *, details: JsonObject | None = None, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(422, "Invalid", message, details=details, causes=causes)


class TooManyRequests(ApiError):
    def __init__(
        self, message: str, *, details: JsonObject | None = None, causes: Sequence[Cause] = ()
    ) -> None:
        super().__init__(429, "TooManyRequests", message, details=details, causes=causes)
