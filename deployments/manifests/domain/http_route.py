"""The one route of a deployment: a stable address whatever serves behind it, with weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.domain import specs
from deployments.domain.manifests.parts import Manifest, Place, metadata
from deployments.domain.names import workload_name
from deployments.domain.specs import ServingSpec

API_VERSION = "gateway.networking.k8s.io/v1"
KIND = "HTTPRoute"


# What each engine's controller, or the portal, names the Service of a workload.
_SERVICE_SUFFIX: Final = {
    specs.KSERVE_TRITON: "-predictor",
    specs.KSERVE_VLLM: "-predictor",
    specs.LLM_SERVICE: "-kserve-workload-svc",
}
_LLM_SERVICE_PORT: Final = 8000
_MIRROR: Final = "RequestMirror"
# A workload is never changed, so Knative never makes a second revision of it.
_KNATIVE_REVISION: Final = "-predictor-00001"


@dataclass(frozen=True, slots=True)
class Backend:
    """A revision behind the route and its share in percent, or the share that is copied to it."""

    number: int
    engine: str
    weight: int
    is_knative: bool = False
    has_transformer: bool = False
    mirror: int = 0

    def service_of(self, deployment: str) -> str:
        workload = workload_name(deployment, self.number)
        if self.is_knative:
            return f"{workload}{_KNATIVE_REVISION}"
        if self.has_transformer:
            return f"{workload}-transformer"
        return f"{workload}{_SERVICE_SUFFIX.get(self.engine, '')}"


def backend_for(number: int, spec: ServingSpec, weight: int, *, mirror: int = 0) -> Backend:
    return Backend(
        number=number,
        engine=spec.engine,
        weight=weight,
        is_knative=spec.scaling.kind == specs.KNATIVE,
        has_transformer=bool(spec.components.transformer_image),
        mirror=mirror,
    )


def service_name(deployment: str, number: int, spec: ServingSpec) -> str:
    return backend_for(number, spec, 0).service_of(deployment)


def path_prefix(place: Place) -> str:
    return f"/{place.namespace}/{place.deployment}"


def http_route(place: Place, backends: Sequence[Backend]) -> Manifest:
    """Weights are percentages, as approved. A revision without a share is left out: the route never
    names a Service that may not exist yet, or no longer.
    """
    rewrite = {"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/"}}
    rule = {
        "matches": [{"path": {"type": "PathPrefix", "value": path_prefix(place)}}],
        "filters": [
            {"type": "URLRewrite", "urlRewrite": rewrite},
            *(_mirror_filter(place, backend) for backend in backends if backend.mirror),
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
        backend.service_of(place.deployment): backend.weight
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


def mirrors_of(place: Place, backends: Sequence[Backend]) -> dict[str, int]:
    """Service name to the percent of requests that are to be copied to it, zeros left out."""
    return {
        backend.service_of(place.deployment): backend.mirror
        for backend in backends
        if backend.mirror
    }


def mirrors_in(route: Mapping[str, Any] | None) -> dict[str, int]:
    """The same as the live route has it; a mirror that names no share copies everything."""
    rules = (route or {}).get("spec", {}).get("rules") or [{}]
    filters = [found for found in rules[0].get("filters", []) if found.get("type") == _MIRROR]
    found = (one["requestMirror"] for one in filters)
    return {one["backendRef"]["name"]: int(one.get("percent", 100)) for one in found}


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


def _mirror_filter(place: Place, backend: Backend) -> dict[str, Any]:
    to = {"name": backend.service_of(place.deployment), "port": _port_of(backend)}
    return {"type": _MIRROR, "requestMirror": {"backendRef": to, "percent": backend.mirror}}


def _port_of(backend: Backend) -> int:
    return _LLM_SERVICE_PORT if backend.engine == specs.LLM_SERVICE else 80


def _backend_ref(place: Place, backend: Backend) -> dict[str, Any]:
    name = backend.service_of(place.deployment)
    made = {"name": name, "port": _port_of(backend), "weight": backend.weight}
    if backend.is_knative:
        # The activator holds requests back while the first pod starts, and asks for which revision.
        headers = [
            {"name": "Knative-Serving-Namespace", "value": place.namespace},
            {"name": "Knative-Serving-Revision", "value": name},
        ]
        made["filters"] = [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": headers}}
        ]
    return made
