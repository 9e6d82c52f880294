"""The serving spec in the API, as its definition states it. The spec itself checks the values."""

from __future__ import annotations

from typing import Any

from deployments.spec.domain.serving_spec import AdditionalModel, ServingSpec
from portal.api.definition_serializers import serializer_of
from portal.core import definitions

ServingSpecSerializer = serializer_of(ServingSpec)
AdditionalModelSerializer = serializer_of(AdditionalModel)


def additional_models_of(data: list[dict[str, Any]]) -> tuple[AdditionalModel, ...]:
    """Read the settings of additional models. Raises Rejected."""
    additional = []
    for index, item in enumerate(data):
        with definitions.inside(f"additional_models.{index}"):
            additional.append(AdditionalModel.from_json(item))
    return tuple(additional)
