"""Read a request body through its serializer."""

from __future__ import annotations

from typing import Any

from rest_framework.request import Request

from portal.api.base_serializer import Serializer


def read(shape: type[Serializer], request: Request) -> dict[str, Any]:
    """The body in that shape; raises a ValidationError that becomes a problem with fields."""
    serializer = shape(data=request.data)
    serializer.is_valid(raise_exception=True)
    data: dict[str, Any] = serializer.validated_data
    return data
