"""The one route of a deployment: a stable address whatever serves behind it, with weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from deployments.domain import specs
from deployments.domain.manifests.parts import Manifest, Place, metadata
from deployments.domain.names import workload_name

API_VERSION = "gateway.networking.k8s.io/v1"
KIND = "HTTPRoute"


@dataclass(frozen=True, slots=True)
class Backend:
    """A revision behind the route and its share in percent."""

    number: int
    engine: str
    weight: int


def service_name(deployment: str, number: int, engine: str) -> str:
    workload = workload_name(deployment, number)
    return f"{workload}-predictor" if engine == specs.KSERVE_TRITON else workload


def path_prefix(place: Place) -> str:
    return f"/{place.namespace}/{place.deployment}"


def http_route(place: Place, backends: Sequence[Backend]) -> Manifest:
    """Weights are percentages, as approved. A revision without a share is left out: the route never
    names a Service that may not exist yet, or no longer.
    """
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path_prefix(place)}}],
        "filters": [
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
            }
        ],
        "backendRefs": [_backend_ref(place, backend) for backend in backends if backend.weight],
    }
    parent = {"name": place.gateway_name, "namespace": place.gateway_namespace}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(place, place.deployment),
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def weights_of(place: Place, backends: Sequence[Backend]) -> dict[str, int]:
    """Service name to weight as wanted, zeros left out."""
    return {
        service_name(place.deployment, backend.number, backend.engine): backend.weight
        for backend in backends
        if backend.weight
    }


def weights_in(route: Mapping[str, Any] | None) -> dict[str, int] | None:
    """Service name to weight as the live route has it, zeros left out; None when there is none."""
    if route is None:
        return None
    rules = route.get("spec", {}).get("rules") or [{}]
    found = {ref["name"]: int(ref.get("weight", 1)) for ref in rules[0].get("backendRefs", [])}
    return {name: weight for name, weight in found.items() if weight}


def problem_with(route: Mapping[str, Any]) -> str | None:
    """Why the gateway does not follow the route: empty when it does, None when it has not said."""
    generation = route.get("metadata", {}).get("generation", 0)
    parents = route.get("status", {}).get("parents", [])
    conditions = [c for parent in parents for c in parent.get("conditions", [])]
    fresh = [c for c in conditions if c.get("observedGeneration", generation) >= generation]
    if not any(c["type"] == "Accepted" for c in fresh):
        return None
    bad = [c for c in fresh if c["type"] in ("Accepted", "ResolvedRefs") and c["status"] != "True"]
    return "; ".join(c.get("message") or c.get("reason", "refused") for c in bad)


def _backend_ref(place: Place, backend: Backend) -> dict[str, Any]:
    name = service_name(place.deployment, backend.number, backend.engine)
    return {"name": name, "port": 80, "weight": backend.weight}
