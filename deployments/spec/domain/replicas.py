"""Other replicas of a running spec, approved separately."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.spec.domain import serving_spec
from deployments.spec.domain.scaling import AUTOMATIC, FIXED, HPA
from deployments.spec.domain.serving_spec import ServingSpec


def with_replicas(spec: ServingSpec, *, min_replicas: int, max_replicas: int) -> ServingSpec:
    """Return the spec with other replicas. A range of one number is fixed. A fixed number that becomes a range
    names no autoscaler yet: the capabilities of the cluster decide
    (deployments/spec/domain/default_scaling.py). Raises Rejected for what no cluster would run.
    """
    scaling = spec.scaling
    is_range = min_replicas < max_replicas
    if scaling.kind == FIXED and is_range:
        scaling = scaling.replace(kind=AUTOMATIC)
    elif scaling.kind == HPA and not is_range:
        scaling = scaling.replace(kind=FIXED, metric="", target=0)
    return spec.replace(scaling=scaling, min_replicas=min_replicas, max_replicas=max_replicas)


def scale_of(spec: ServingSpec, *, number: int) -> dict[str, Any]:
    """Return a scale as stored: the parts of the spec that differ from the revision's own, as JSON. `network`
    is among them because an autoscaler may need a ServiceMonitor.
    """
    return {
        "revision": number,
        "min_replicas": spec.min_replicas,
        "max_replicas": spec.max_replicas,
        "scaling": spec.scaling.model_dump(),
        "network": spec.network.model_dump(),
    }


def range_of(scale: Mapping[str, Any]) -> tuple[int, int] | None:
    """Return the fewest and most replicas of a scaling. None where nothing is scaled."""
    return (int(scale["min_replicas"]), int(scale["max_replicas"])) if scale else None


def apply_scale(spec: ServingSpec, *, number: int, scale: Mapping[str, Any]) -> ServingSpec:
    """Return the spec with its scale. A scale belongs to one revision; others are unchanged."""
    if scale.get("revision") != number:
        return spec
    parts = {name: value for name, value in scale.items() if name != "revision"}
    return serving_spec.read_stored({**spec.to_json(), **parts})


def least_of(spec: Mapping[str, Any], *, number: int, scale: Mapping[str, Any]) -> int:
    """Return the min replicas of a stored spec with its scale, without reading all of it."""
    is_scaled = scale.get("revision") == number
    return int((scale if is_scaled else spec)["min_replicas"])


def reduce_replicas(spec: ServingSpec, count: int) -> ServingSpec:
    """Return the spec with fewer replicas for a while. An autoscaler may still add some, up to its max."""
    most = count if spec.scaling.kind == FIXED else spec.max_replicas
    return spec.replace(min_replicas=count, max_replicas=most)
