"""What every API view reads from a request: the actor, the body and the query, each validated."""

from __future__ import annotations

from typing import Any, cast

from rest_framework.request import Request

from portal.accounts.models import User
from portal.api.base_serializer import Serializer


def actor_of(request: Request) -> User:
    """API views admit signed-in users only, so the user is never anonymous."""
    return cast("User", request.user)


def read_body(serializer_class: type[Serializer], request: Request) -> dict[str, Any]:
    """Raises DRF's ValidationError, which becomes a problem that names the fields."""
    return _validated(serializer_class, request.data)


def read_query(serializer_class: type[Serializer], request: Request) -> dict[str, Any]:
    """The query parameters of a list; raises as `read_body` does."""
    return _validated(serializer_class, request.query_params)


def _validated(serializer_class: type[Serializer], data: Any) -> dict[str, Any]:
    serializer = serializer_class(data=data)
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)
