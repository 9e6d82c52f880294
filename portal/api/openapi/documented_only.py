"""Refuse what the OpenAPI document does not have: a body where an operation has none, and unknown query parameters."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from portal.api.base_serializer import Serializer, unknown_fields
from portal.api.requests import read_body

if TYPE_CHECKING:
    from rest_framework.views import APIView


class NoBody(Serializer):
    pass


# A permission, because DRF asks for these in every view, after it knows the caller and before the view does anything.
class DocumentedOnly(BasePermission):
    """Raises DRF's ValidationError, which names what is unknown."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        method = "GET" if request.method == "HEAD" else str(request.method)
        documented = _documented(type(view), method)  # type: ignore[arg-type]  # classes are hashable
        if documented is None:
            return True
        if documented.is_bodyless:
            read_body(NoBody, request)
        refuse_other_parameters(request, documented.query)
        return True


def refuse_other_parameters(request: Request, known: Iterable[str]) -> None:
    """Raises DRF's ValidationError, which names them."""
    if unknown := unknown_fields(request.query_params, known):
        raise serializers.ValidationError(unknown)


@dataclass(frozen=True, slots=True)
class _Documented:
    """The documented parts of an operation. GET reads no body: HTTP gives it no meaning."""

    query: tuple[str, ...]
    is_bodyless: bool


@lru_cache(maxsize=1024)
def _documented(view_class: type[APIView], method: str) -> _Documented | None:
    """Return the documented parts of an operation. None if it is not in the document."""
    handler = getattr(view_class, method.lower(), None)
    schema_class = getattr(handler, "kwargs", {}).get("schema")
    if schema_class is None:
        return None
    schema: Any = schema_class()
    # No answer here depends on the path.
    schema.view, schema.method, schema.path = view_class(), method, ""
    schema.view.request, schema.view.args, schema.view.kwargs = None, (), {}
    if schema.is_excluded():
        return None
    may_have_body = method in ("POST", "PUT", "PATCH")
    has_body = may_have_body and schema.get_request_serializer() is not None
    return _Documented(
        query=tuple(_query_names(schema)),
        is_bodyless=method != "GET" and not has_body,
    )


def _query_names(schema: Any) -> Iterable[str]:
    for parameter in schema.get_override_parameters():
        if not isinstance(parameter, OpenApiParameter):
            yield from parameter().fields
        elif parameter.location == OpenApiParameter.QUERY:
            yield parameter.name
    yield from (parameter["name"] for parameter in schema._get_pagination_parameters())
