"""The HTTPRoute of a deployment: a stable address with weighted backends, for HTTP and for gRPC.

The path of a gRPC request names its method, so a header names the deployment. One route holds the
weights of both: a GRPCRoute beside it would move at another moment, and the Gateway API refuses
routes of both kinds for one host (ADR 1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from deployments.manifests.domain import route_paths
from deployments.manifests.domain.metadata import Manifest, ManifestContext, metadata
from deployments.manifests.domain.route_paths import Api, ServerPath
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import ServingSpec

API_VERSION = "gateway.networking.k8s.io/v1"
KIND = "HTTPRoute"


# How each engine's controller, or the portal, names the Service of a workload.
_SERVICE_SUFFIX: Final = {
    serving_spec.KSERVE_TRITON: "-predictor",
    serving_spec.KSERVE_VLLM: "-predictor",
    serving_spec.KSERVE_SGLANG: "-predictor",
    serving_spec.KSERVE_TENSORRT_LLM: "-predictor",
    serving_spec.LLM_SERVICE: "-kserve-workload-svc",
}
_LLM_SERVICE_PORT: Final = 8000
_POOL_SUFFIX: Final = "-inference-pool"
_GRPC_PORT: Final = 9000
GRPC_HEADER: Final = "slipway-deployment"
_MIRROR: Final = "RequestMirror"
# The default of a gateway, Envoy's is 15 seconds, would cut a long text. A stream that stops is still
# ended by the gateway's limit of idle time.
_NO_TIMEOUT: Final = {"request": "0s"}
# A workload is never changed, so Knative never makes a second revision of it.
_KNATIVE_REVISION: Final = "-predictor-00001"


@dataclass(frozen=True, slots=True)
class RouteBackend:
    """A revision behind the route. `weight` is the percent of requests sent to it, `mirror` the percent
    copied to it; `api` names the paths that the route carries.
    """

    number: int
    engine: str
    weight: int
    api: Api
    is_knative: bool = False
    mirror: int = 0
    has_pool: bool = False
    # Names that a request at the team's address may have as its model; empty where it does not serve there.
    team_models: tuple[str, ...] = ()

    @property
    def has_grpc(self) -> bool:
        """Whether the revision answers gRPC, at Triton's own port. A Knative revision has one port only."""
        return bool(self.api.models) and not self.is_knative

    def service_of(self, deployment: str) -> str:
        workload = workload_name(deployment, self.number)
        if self.is_knative:
            return f"{workload}{_KNATIVE_REVISION}"
        return f"{workload}{_SERVICE_SUFFIX.get(self.engine, '')}"


def backend_for(
    number: int, spec: ServingSpec, weight: int, *, model: str, mirror: int = 0
) -> RouteBackend:
    """Return the backend of a revision. `model` is the name of the revision's own model."""
    return RouteBackend(
        number=number,
        engine=spec.engine,
        weight=weight,
        api=route_paths.api_of(spec, model),
        is_knative=spec.scaling.kind == serving_spec.KNATIVE,
        mirror=mirror,
        has_pool=spec.llm is not None and spec.llm.prefix_routing,
        team_models=team_models_of(spec, model),
    )


def team_models_of(spec: ServingSpec, model: str) -> tuple[str, ...]:
    """Return the model's own name and its adapters', as its server answers to them."""
    if not spec.network.team_address:
        return ()
    adapters = [item.partition("=")[0] for item in spec.llm.adapters] if spec.llm else []
    is_prefixed = spec.engine == serving_spec.KSERVE_SGLANG
    return (model, *(f"{model}:{name}" if is_prefixed else name for name in adapters))


def service_name(deployment: str, number: int, spec: ServingSpec) -> str:
    return backend_for(number, spec, 0, model="").service_of(deployment)


def path_prefix(context: ManifestContext) -> str:
    return f"/{context.namespace}/{context.deployment}"


def http_route(context: ManifestContext, backends: Sequence[RouteBackend]) -> Manifest:
    """Return the route. Weights are the approved percentages. A revision without weight is left out: the route
    never names a Service that may not exist. One rule for each path; all other paths answer 404. The first
    backend, the stable revision, decides whether the team's address leads here too.
    """
    models = backends[0].team_models if backends else ()
    mirrored = [backend for backend in backends if backend.mirror]
    serving = [backend for backend in backends if backend.weight]
    parent = {"name": context.gateway_name, "namespace": context.gateway_namespace}
    rules = [
        {
            **_rewritten(context, path, mirrored, models),
            "backendRefs": _backend_refs(context, path, serving),
        }
        for path in route_paths.paths_of([backend.api for backend in serving])
    ]
    if serving and all(backend.has_grpc for backend in [*serving, *mirrored]):
        rules.append(_grpc_rule(context, serving, mirrored))
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(context, context.deployment),
        "spec": {"parentRefs": [parent], "rules": rules or [_rule_without_backend(context)]},
    }


def _rule_without_backend(context: ManifestContext) -> dict[str, Any]:
    """Return a rule without a backend: a route without rules would match every request."""
    return {"matches": [{"path": {"type": "Exact", "value": path_prefix(context)}}]}


def grpc_header(context: ManifestContext) -> str:
    """Return the value of GRPC_HEADER that names the deployment."""
    return path_prefix(context).removeprefix("/")


def _grpc_rule(
    context: ManifestContext, serving: Sequence[RouteBackend], mirrored: Sequence[RouteBackend]
) -> dict[str, Any]:
    header = {"type": "Exact", "name": GRPC_HEADER, "value": grpc_header(context)}
    filters = [_mirror_filter(context, backend, _GRPC_PORT) for backend in mirrored]
    return {
        # A stream of requests lasts as long as its client likes.
        "timeouts": dict(_NO_TIMEOUT),
        "matches": [
            {"path": {"type": "Exact", "value": method}, "headers": [header]}
            for method in route_paths.GRPC_METHODS
        ],
        **({"filters": filters} if filters else {}),
        "backendRefs": [
            {
                "name": backend.service_of(context.deployment),
                "port": _GRPC_PORT,
                "weight": backend.weight,
            }
            for backend in serving
        ],
    }


def _rewritten(
    context: ManifestContext,
    path: ServerPath,
    mirrored: Sequence[RouteBackend],
    models: Sequence[str],
) -> dict[str, Any]:
    kind, change = "Exact", {"type": "ReplaceFullPath", "replaceFullPath": path.value}
    if path.is_prefix:
        kind = "PathPrefix"
        change = {"type": "ReplacePrefixMatch", "replacePrefixMatch": path.value}
    return {
        **({"timeouts": dict(_NO_TIMEOUT)} if path.generates_text else {}),
        "matches": [
            {"path": {"type": kind, "value": f"{path_prefix(context)}{path.value}"}},
            *route_paths.team_matches(context.namespace, path, models),
        ],
        "filters": [
            {"type": "URLRewrite", "urlRewrite": {"path": change}},
            *(_mirror_filter(context, backend, _port_of(backend)) for backend in mirrored),
        ],
    }


def weights_of(context: ManifestContext, backends: Sequence[RouteBackend]) -> dict[str, int]:
    """Return the desired percentages by Service name, without zeros."""
    return {
        backend.service_of(context.deployment): backend.weight
        for backend in backends
        if backend.weight
    }


def weights_in(route: Mapping[str, Any] | None) -> dict[str, int] | None:
    """Return the percentages by Service name in the live route, without zeros. None without a route.

    Empty where its rules disagree: the route was edited, and no weight holds for all requests.
    """
    if route is None:
        return None
    first, *others = [_weights_of_rule(rule) for rule in _rules(route)]
    return first if all(weights == first for weights in others) else {}


def _rules(route: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return route.get("spec", {}).get("rules") or [{}]


def _weights_of_rule(rule: Mapping[str, Any]) -> dict[str, int]:
    weights = {_service_in(ref): int(ref.get("weight", 1)) for ref in rule.get("backendRefs", [])}
    return {name: weight for name, weight in weights.items() if weight}


def _service_in(ref: Mapping[str, Any]) -> str:
    """Return the Service of the same pods, where the reference is to a pool."""
    name = str(ref["name"])
    if not route_paths.is_pool(ref):
        return name
    return name.removesuffix(_POOL_SUFFIX) + _SERVICE_SUFFIX[serving_spec.LLM_SERVICE]


def mirrors_of(context: ManifestContext, backends: Sequence[RouteBackend]) -> dict[str, int]:
    """Return the desired percentages of mirrored requests by Service name, without zeros."""
    return {
        backend.service_of(context.deployment): backend.mirror
        for backend in backends
        if backend.mirror
    }


def mirrors_in(route: Mapping[str, Any] | None) -> dict[str, int]:
    """Return the percentages of mirrored requests by Service name in the live route. A mirror without a
    percentage copies all requests. Empty where its rules disagree.
    """
    first, *others = [_mirrors_of_rule(rule) for rule in _rules(route or {})]
    return first if all(mirrors == first for mirrors in others) else {}


def _mirrors_of_rule(rule: Mapping[str, Any]) -> dict[str, int]:
    filters = [item for item in rule.get("filters", []) if item.get("type") == _MIRROR]
    mirrors = (item["requestMirror"] for item in filters)
    return {mirror["backendRef"]["name"]: int(mirror.get("percent", 100)) for mirror in mirrors}


def problem_with(route: Mapping[str, Any]) -> str | None:
    """Say why the gateway does not follow the route. Empty when it does, None while it has not reported."""
    generation = route.get("metadata", {}).get("generation", 0)
    parents = route.get("status", {}).get("parents", [])
    conditions = [c for parent in parents for c in parent.get("conditions", [])]
    fresh = [c for c in conditions if c.get("observedGeneration", generation) >= generation]
    if not any(c["type"] == "Accepted" for c in fresh):
        return None
    bad = [c for c in fresh if c["type"] in ("Accepted", "ResolvedRefs") and c["status"] != "True"]
    return "; ".join(c.get("message") or c.get("reason", "refused") for c in bad)


def _mirror_filter(context: ManifestContext, backend: RouteBackend, port: int) -> dict[str, Any]:
    to = {"name": backend.service_of(context.deployment), "port": port}
    return {"type": _MIRROR, "requestMirror": {"backendRef": to, "percent": backend.mirror}}


def _port_of(backend: RouteBackend) -> int:
    return _LLM_SERVICE_PORT if backend.engine == serving_spec.LLM_SERVICE else 80


def _backend_refs(
    context: ManifestContext, path: ServerPath, serving: Sequence[RouteBackend]
) -> list[dict[str, Any]]:
    """Return the backends of a rule. A picker chooses for prompts alone, and for one revision alone: gateways
    exist that ask one picker for all backends of a rule, so that a canary without ready pods would fail the
    requests of both.
    """
    if path.generates_text and len(serving) == 1 and serving[0].has_pool:
        name = f"{workload_name(context.deployment, serving[0].number)}{_POOL_SUFFIX}"
        return [{**route_paths.POOL, "name": name, "weight": serving[0].weight}]
    return [_backend_ref(context, backend) for backend in serving]


def _backend_ref(context: ManifestContext, backend: RouteBackend) -> dict[str, Any]:
    name = backend.service_of(context.deployment)
    backend_ref = {"name": name, "port": _port_of(backend), "weight": backend.weight}
    if backend.is_knative:
        # The activator buffers requests while the first pod starts; the headers name the revision.
        headers = [
            {"name": "Knative-Serving-Namespace", "value": context.namespace},
            {"name": "Knative-Serving-Revision", "value": name},
        ]
        backend_ref["filters"] = [
            {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": headers}}
        ]
    return backend_ref
