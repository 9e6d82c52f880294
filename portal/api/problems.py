"""Errors as RFC 9457 problem responses with stable codes.

Body: {type, title, status, detail, code, errors?: [{field, detail}]}; type is "about:blank#<code>".
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from portal.core.errors import DomainError, Forbidden, Invalid, NotFound, TooLarge

CONTENT_TYPE = "application/problem+json"


def exception_handler(error: Exception, context: dict[str, Any]) -> Response | None:
    """Handle exceptions for DRF. Unexpected errors return None and become a logged 500."""
    problem = _as_domain_error(error)
    if problem is None:
        return None
    set_rollback()
    headers = {}
    if isinstance(error, exceptions.APIException):
        if header := getattr(error, "auth_header", None):
            headers["WWW-Authenticate"] = header
        if wait := getattr(error, "wait", None):
            headers["Retry-After"] = str(int(wait))
    if problem.retry_after_seconds:
        headers["Retry-After"] = str(problem.retry_after_seconds)
    return Response(
        body_of(problem), status=problem.status, headers=headers, content_type=CONTENT_TYPE
    )


def body_of(error: DomainError) -> dict[str, Any]:
    body: dict[str, Any] = {
        "type": f"about:blank#{error.code}",
        "title": error.title,
        "status": int(error.status),
        "detail": error.message,
        "code": error.code,
    }
    if error.fields:
        body["errors"] = [{"field": k, "detail": v} for k, v in sorted(error.fields.items())]
    return body


def _as_domain_error(error: Exception) -> DomainError | None:
    if isinstance(error, DomainError):
        return error
    if isinstance(error, Http404):
        return NotFound("Nothing exists at this address.")
    if isinstance(error, RequestDataTooBig):
        return TooLarge("The body is too large. Upload files to the object store instead.")
    if isinstance(error, PermissionDenied):
        return Forbidden(str(error) or "You are not allowed to do this.")
    if isinstance(error, exceptions.ValidationError):
        fields = _flatten(error.detail)
        names = ", ".join(fields) or "the body"
        return Invalid(f"Check {names}: {'; '.join(fields.values())}", fields=fields)
    return _of_framework(error) if isinstance(error, exceptions.APIException) else None


def _of_framework(error: exceptions.APIException) -> DomainError:
    result = DomainError(str(error.detail), code=str(error.default_code))
    result.status = HTTPStatus(error.status_code)
    result.title = result.status.phrase
    return result


def _flatten(detail: Any, prefix: str = "") -> dict[str, str]:
    if isinstance(detail, dict):
        flat: dict[str, str] = {}
        for key, value in detail.items():
            step = f"[{key}]" if str(key).isdigit() else f".{key}"
            flat |= _flatten(value, f"{prefix}{step}".removeprefix("."))
        return flat
    if isinstance(detail, list) and any(isinstance(item, dict | list) for item in detail):
        flat = {}
        for index, value in enumerate(detail):
            flat |= _flatten(value, f"{prefix}[{index}]")
        return flat
    text = " ".join(str(item) for item in detail) if isinstance(detail, list) else str(detail)
    return {prefix or "body": text}
