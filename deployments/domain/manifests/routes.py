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
    """Weights are percentages, as approved; they sum to 100 with a stable revision."""
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path_prefix(place)}}],
        "filters": [
            {
                "type": "URLRewrite",
                "urlRewrite": {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}},
            }
        ],
        "backendRefs": [_backend_ref(place, backend) for backend in backends],
    }
    parent = {"name": place.gateway_name, "namespace": place.gateway_namespace}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(place, place.deployment),
        "spec": {"parentRefs": [parent], "rules": [rule]},
    }


def weights_in(route: Mapping[str, Any] | None) -> dict[str, int] | None:
    """Service name to weight as the live route has it; None when there is no route."""
    if route is None:
        return None
    rules = route.get("spec", {}).get("rules") or [{}]
    found = rules[0].get("backendRefs", [])
    return {str(ref["name"]): int(ref.get("weight", 1)) for ref in found}


def _backend_ref(place: Place, backend: Backend) -> dict[str, Any]:
    name = service_name(place.deployment, backend.number, backend.engine)
    return {"name": name, "port": 80, "weight": backend.weight}
