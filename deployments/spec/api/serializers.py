"""The serving spec in the API, as its definition states it. The spec itself checks the values."""

from __future__ import annotations

from typing import Any

from deployments.spec.domain.serving_spec import Packed, ServingSpec
from portal.api.definition_serializers import serializer_of
from portal.core import definitions

ServingSpecSerializer = serializer_of(ServingSpec)
PackedSerializer = serializer_of(Packed)


def packed_of(data: list[dict[str, Any]]) -> tuple[Packed, ...]:
    """Raises Rejected."""
    packed = []
    for index, item in enumerate(data):
        with definitions.inside(f"packed.{index}"):
            packed.append(Packed.from_json(item))
    return tuple(packed)
