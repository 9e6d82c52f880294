"""Other replicas of a spec that runs, approved on their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from deployments.domain.spec_parts import FIXED, HPA
from deployments.domain.specs import ServingSpec


def with_replicas(spec: ServingSpec, *, min_replicas: int, max_replicas: int) -> ServingSpec:
    """A fixed number that becomes a range is scaled as is usual for the engine, and a range of one
    number is fixed. Raises Rejected for what no cluster would run.
    """
    scaling = spec.scaling
    is_range = min_replicas < max_replicas
    if (scaling.kind == FIXED and is_range) or (scaling.kind == HPA and not is_range):
        scaling = replace(scaling, kind="", metric="", target=0)
    return replace(spec, scaling=scaling, min_replicas=min_replicas, max_replicas=max_replicas)


def scaled(spec: ServingSpec, *, number: int, scale: Mapping[str, int]) -> ServingSpec:
    """A scale belongs to one revision and leaves every other one as it is."""
    if scale.get("revision") != number:
        return spec
    return with_replicas(
        spec, min_replicas=scale["min_replicas"], max_replicas=scale["max_replicas"]
    )
