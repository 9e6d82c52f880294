"""The engines that load a version: by its address for external weights, by its format and architecture for an
upload.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.registry.domain import external_weights
from deployments.registry.domain.formats import catalogue
from deployments.registry.domain.hugging_face import facts


def engines_for(
    source_uri: str, format_key: str, signature: Mapping[str, Any] | None = None
) -> tuple[str, ...]:
    """Return the engines that load a version. `signature` is its column; the architecture in it may leave some
    engines of the format out.
    """
    if source_uri:
        return external_weights.parse(source_uri).engines
    engines = catalogue.engines_of(format_key)
    model = (signature or {}).get(facts.KEY, {})
    # Versions that were read before have none.
    served = model.get("engines")
    return engines if served is None else tuple(engine for engine in engines if engine in served)
