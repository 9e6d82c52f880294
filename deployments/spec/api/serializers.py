"""The serving spec in the API, as its definition states it. The spec itself checks the values."""

from __future__ import annotations

from typing import Any

from deployments.spec.domain.serving_spec import Packed, ServingSpec
from portal.api.definition_serializers import serializer_of

ServingSpecSerializer = serializer_of(ServingSpec)
PackedSerializer = serializer_of(Packed)


def packed_of(data: list[dict[str, Any]]) -> tuple[Packed, ...]:
    """Only what memory depends on."""
    return tuple(
        Packed(
            model=packed["model"],
            version=packed["version"],
            instances_per_gpu=packed["instances_per_gpu"],
        )
        for packed in data
    )
