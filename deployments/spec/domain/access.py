"""Who gets answers at an address, as a spec states it and as a change alters it."""

from __future__ import annotations

from typing import Final

from deployments.spec.domain.pod_settings import KEYS, OPEN
from deployments.spec.domain.serving_spec import ServingSpec

DESCRIPTIONS: Final = {
    KEYS: "Only callers with a key get answers.",
    OPEN: "Everyone who reaches the gateway gets answers, without a key.",
}


def kept(spec: ServingSpec, current: ServingSpec) -> ServingSpec:
    """The spec with the access of what serves now, unless it states its own."""
    if "network" in spec.model_fields_set and "access" in spec.network.model_fields_set:
        return spec
    return spec.replace(network=spec.network.replace(access=current.network.access))
