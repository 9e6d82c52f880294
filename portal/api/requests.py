"""The readers of API requests: the actor, the body and the query, each validated."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

from rest_framework import serializers
from rest_framework.request import Request

from portal.accounts.models import User
from portal.api.base_serializer import Serializer, bound_integers


def actor_of(request: Request) -> User:
    """Return the user of an API request. API views admit signed-in users only, so the user is never anonymous."""
    return cast("User", request.user)


def read_body(serializer_class: type[Serializer], request: Request) -> dict[str, Any]:
    """Raises DRF's ValidationError, which becomes a problem that names the fields."""
    return _validated(serializer_class, request.data)


def read_data(serializer_class: type[Serializer], data: Any) -> dict[str, Any]:
    """Read a body that was completed before. Raises as `read_body` does."""
    return _validated(serializer_class, data)


def read_query(serializer_class: type[Serializer], request: Request) -> dict[str, Any]:
    """Read the query parameters of a list. Raises as `read_body` does."""
    return _validated(serializer_class, request.query_params)


def _validated(serializer_class: type[Serializer], data: Any) -> dict[str, Any]:
    try:
        values = _kept(serializer_class).run_validation(data)
    except serializers.ValidationError:
        # Once more by a serializer of its own, which knows how to say what is wrong.
        serializer = serializer_class(data=data)
        bound_integers(serializer)
        serializer.is_valid(raise_exception=True)
        values = serializer.validated_data
    return dict(values)


@lru_cache(maxsize=512)
def _kept(serializer_class: type[Serializer]) -> Serializer:
    """One for all requests and threads: validation of a value changes nothing in it, and copying its fields for each
    request costs more than the validation.
    """
    serializer = serializer_class()
    bound_integers(serializer)
    return serializer
