"""Which engines load a version: by its address for external weights, by its format for an upload."""

from __future__ import annotations

from deployments.registry.domain import external_weights
from deployments.registry.domain.formats import catalogue


def engines_for(source_uri: str, format_key: str) -> tuple[str, ...]:
    if source_uri:
        return external_weights.parse(source_uri).engines
    return catalogue.engines_of(format_key)
