"""Parts that are added to every operation of the OpenAPI document: authentication, problems,
Idempotency-Key and If-Match.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent

from portal.api.base_serializer import Serializer
from portal.api.etags import ConditionalMixin
from portal.api.idempotency import MAX_KEY_LENGTH, IdempotentMixin
from portal.api.problems import CONTENT_TYPE

_CHANGES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_DESCRIPTION = "An API token of a person or a service account. Its scopes limit what it may do."
# Every operation refuses what it does not know.
_ANY = (
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.TOO_MANY_REQUESTS,
)
_OF_BODIES = (
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
)
_OF_CHANGES = (HTTPStatus.FORBIDDEN, HTTPStatus.CONFLICT)


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # an untyped base
    target_class = "portal.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": _DESCRIPTION}


class ProblemSchema(AutoSchema):
    """Adds the problems that all operations of a kind share; views list only their own."""

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        is_repeatable = self.method == "POST" and isinstance(self.view, IdempotentMixin)
        is_conditional = isinstance(self.view, ConditionalMixin)
        added: list[HTTPStatus] = []
        if is_repeatable:
            _add_header(operation, _IDEMPOTENCY_KEY)
            added.append(HTTPStatus.CONFLICT)
        if is_conditional and self.method in ConditionalMixin.guarded:
            _add_header(operation, _IF_MATCH)
            added.append(HTTPStatus.PRECONDITION_FAILED)
        if is_conditional and self.method == "GET":
            operation["responses"]["200"]["headers"] = {"ETag": _ETAG}
        self._add_problems(operation, [*added, *_problems_of(operation, self.method)])
        return operation

    def _map_basic_serializer(self, serializer: Any, direction: str) -> Any:
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]  # an untyped base
        if direction == "request" and isinstance(serializer, Serializer):
            schema["additionalProperties"] = False
        return schema

    def _add_problems(self, operation: dict[str, Any], added: list[HTTPStatus]) -> None:
        responses = operation["responses"]
        body = {CONTENT_TYPE: {"schema": self._problem()}}
        for status in added:
            responses.setdefault(str(int(status)), {"description": status.phrase})
        for code, response in responses.items():
            if int(code) >= HTTPStatus.BAD_REQUEST:
                response["content"] = body
            if int(code) == HTTPStatus.TOO_MANY_REQUESTS:
                response["headers"] = {"Retry-After": _RETRY_AFTER}
        operation["responses"] = dict(sorted(responses.items()))

    def _problem(self) -> dict[str, Any]:
        component = ResolvedComponent(  # type: ignore[no-untyped-call]  # an untyped class
            "Problem", ResolvedComponent.SCHEMA, _PROBLEM, "Problem"
        )
        self.registry.register_on_missing(component)
        reference: dict[str, Any] = component.ref
        return reference


_TEXT = {"type": "string"}
_PROBLEM = {
    "type": "object",
    "description": "RFC 9457. `code` is stable and meant for programs; `detail` explains the problem and the fix.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "code"), _TEXT),
        "status": {"type": "integer"},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["field", "detail"],
                "properties": {"field": _TEXT, "detail": _TEXT},
            },
        },
    },
}


_IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "description": "Repeating a request with the same key returns the first response.",
    "schema": {"type": "string", "maxLength": MAX_KEY_LENGTH},
}
_IF_MATCH = {
    "in": "header",
    "name": "If-Match",
    "description": "The ETag of the version you read; 412 if it has changed since.",
    "schema": {"type": "string"},
}
_RETRY_AFTER = {"description": "Seconds to wait.", "schema": {"type": "integer"}}
_ETAG = {"description": "Send it back as If-Match.", "schema": {"type": "string"}}


def _add_header(operation: dict[str, Any], header: dict[str, Any]) -> None:
    operation.setdefault("parameters", []).append(header)


def _problems_of(operation: dict[str, Any], method: str) -> list[HTTPStatus]:
    statuses = list(_ANY)
    places = {parameter["in"] for parameter in operation.get("parameters", [])}
    if places & {"path", "query"} or "requestBody" in operation:
        statuses.append(HTTPStatus.NOT_FOUND)
    if "query" in places:
        statuses.append(HTTPStatus.BAD_REQUEST)
    if method in _CHANGES:
        statuses += (*_OF_BODIES, *_OF_CHANGES)
    return statuses
