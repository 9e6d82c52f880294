"""Network policies: pods of a team reach, and are reached by, only what serving needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from deployments.manifests.domain import tensorrt_llm
from deployments.manifests.domain.access import network_peers
from deployments.manifests.domain.metadata import (
    MANAGED_BY,
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    metadata,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name

_VERSION: Final = "networking.k8s.io/v1"
_KIND: Final = "NetworkPolicy"
LOAD_TEST_LABEL: Final = "slipway.dev/load-test"
BATCH_LABEL: Final = "slipway.dev/batch"
# KServe sets it on the router of a pipeline; the portal sets the labels of other pods.
_PIPELINE_LABEL: Final = "serving.kserve.io/inferencegraph"
# KServe's labels of the endpoint picker of an LLMInferenceService.
_NAME_LABEL: Final = "app.kubernetes.io/name"
_COMPONENT_LABEL: Final = "app.kubernetes.io/component"
_PICKER: Final = "llminferenceservice-router-scheduler"
# Policies see the port of an API server itself, not that of its Service.
_API_SERVER_PORTS: Final = (443, 6443)
_METRICS_PORT: Final = 8002
_HTTPS: Final = 443
_HTTP: Final = 80
_NODE_LOCAL_DNS: Final = "169.254.20.10/32"
# The endpoint of EKS Pod Identity, for credentials of the pod's own role.
_POD_IDENTITY: Final = "169.254.170.23/32"


def default_deny(context: ManifestContext) -> Manifest:
    """Return the policy that denies all traffic except DNS, for every pod in the namespace, whoever created it."""
    return _policy(
        context,
        "slipway-default-deny",
        {"podSelector": {}, "policyTypes": ["Egress", "Ingress"], "egress": [_dns()]},
    )


def pipelines(context: ManifestContext) -> Manifest:
    """Return the policy for routers of pipelines. They receive requests from the gateway and send theirs
    through it.
    """
    gateways = [network_peers.namespace(name) for name in _gateways(context)]
    outside = _outside(context, (_HTTP, _HTTPS))
    return _policy(
        context,
        "slipway-pipelines",
        {
            "podSelector": {
                "matchExpressions": [{"key": _PIPELINE_LABEL, "operator": "Exists"}],
            },
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"from": gateways}],
            "egress": [_dns(), {"to": gateways}, *outside],
        },
    )


def load_tests(context: ManifestContext) -> Manifest:
    return _of_jobs(context, "slipway-load-tests", LOAD_TEST_LABEL, ingress=[])


def batch(context: ManifestContext) -> Manifest:
    """Return the policy for batch jobs. Their metrics are read as those of deployments are."""
    ingress = _metrics(context, _METRICS_PORT)
    return _of_jobs(context, "slipway-batch", BATCH_LABEL, ingress=ingress)


def queue_of(
    context: ManifestContext, name: str, *, servers: Sequence[tuple[str, int]]
) -> Manifest:
    """Return the policy for workers that drain a queue: they reach its hosts and ports, beside what all jobs
    reach.
    """
    reached: list[dict[str, Any]] = []
    for host, port in servers:
        reached += [rule for rule in _to_server(context, host, port) if rule not in reached]
    return _policy(
        context,
        name,
        {
            "podSelector": {"matchLabels": {BATCH_LABEL: name}},
            "policyTypes": ["Egress"],
            "egress": reached,
        },
    )


def _to_server(context: ManifestContext, host: str, port: int) -> list[dict[str, Any]]:
    inside = network_peers.namespace_of(host)
    if not inside:
        return _outside(context, (port,))
    # Policies match the port of the pod, not of its Service.
    if inside == context.namespace:
        return [{"to": [network_peers.namespace(inside)]}]
    return [{"to": [network_peers.namespace(inside)], "ports": [{"port": port, "protocol": "TCP"}]}]


def _of_jobs(
    context: ManifestContext, name: str, label: str, *, ingress: list[dict[str, Any]]
) -> Manifest:
    """Return the policy for pods of Jobs, which read and write files."""
    return _policy(
        context,
        name,
        {
            "podSelector": {"matchExpressions": [{"key": label, "operator": "Exists"}]},
            "policyTypes": ["Egress", "Ingress"],
            "ingress": ingress,
            "egress": [_dns(), *_storage(context)],
        },
    )


def build_workload_policy(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the policy for a revision's pods. Ingress from the gateway, the pod's own namespace and KServe's
    mesh; to the metrics port from Prometheus and the API server. Egress to the other pods of the revision
    and to the sources of models.
    """
    gateways = _gateways(context)
    if served.spec.scaling.kind == serving_spec.KNATIVE:
        gateways.append("knative-serving")
    allowed: list[dict[str, Any]] = [{"podSelector": {}}, *map(network_peers.namespace, gateways)]
    metrics = _metrics(context, metrics_port(served))
    name = workload_name(context.deployment, served.number)
    selector = {"matchLabels": {WORKLOAD_LABEL: name}}
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": metadata(context, name, served),
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"from": allowed}, *metrics, *_control_plane(context, served)],
            "egress": [
                _dns(),
                {"to": [{"podSelector": selector}, *_mesh(served)]},
                *_storage(context),
            ],
        },
    }


def build_endpoint_picker_policy(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the policy for KServe's endpoint picker of the revision: the gateway queries it for a pod; it
    reads metrics of the revision's pods, and pool and pods from the API server.
    """
    workload = workload_name(context.deployment, served.number)
    models = {"podSelector": {"matchLabels": {WORKLOAD_LABEL: workload}}}
    ports = [{"port": port, "protocol": "TCP"} for port in _API_SERVER_PORTS]
    networks = [
        network_peers.block(cidr) for cidr in (*context.control_plane_cidrs, *context.egress_cidrs)
    ]
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": metadata(context, f"{workload}-picker", served),
        "spec": {
            "podSelector": {"matchLabels": {_NAME_LABEL: workload, _COMPONENT_LABEL: _PICKER}},
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"from": [network_peers.namespace(name) for name in _gateways(context)]}],
            "egress": [
                _dns(),
                {"to": [models]},
                *([{"to": networks, "ports": ports}] if networks else []),
            ],
        },
    }


def _gateways(context: ManifestContext) -> list[str]:
    return list(dict.fromkeys([context.gateway_namespace, *context.proxy_namespaces]))


def _metrics(context: ManifestContext, port: int) -> list[dict[str, Any]]:
    """Return the rules for reading metrics: Prometheus, and the portal through the API server. The port of a
    language model also answers requests, and asks for no key.
    """
    ports = [{"port": port, "protocol": "TCP"}]
    if port == _METRICS_PORT and not context.control_plane_cidrs:
        # Nothing but metrics, and where the API server is cannot be told.
        return [{"ports": ports}]
    prometheus = map(network_peers.namespace, context.metrics_namespaces)
    api_servers = map(network_peers.block, context.control_plane_cidrs)
    sources = [*prometheus, *api_servers]
    # A rule without sources would admit everyone.
    return [{"from": sources, "ports": ports}] if sources else []


def _control_plane(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    """Return the ingress for golden requests and trials: they come through the API server, which no label
    selects.
    """
    port = 8000 if served.spec.engine == serving_spec.LLM_SERVICE else 8080
    if not context.control_plane_cidrs or port == metrics_port(served):
        # Who reads metrics reaches that port already.
        return []
    sources = [network_peers.block(cidr) for cidr in context.control_plane_cidrs]
    return [{"from": sources, "ports": [{"port": port, "protocol": "TCP"}]}]


def metrics_port(served: ServedRevision) -> int:
    """Return the port of metrics. Servers of language models serve metrics on the port of their API."""
    ports = {
        serving_spec.KSERVE_VLLM: 8080,
        serving_spec.KSERVE_SGLANG: 8080,
        serving_spec.KSERVE_TENSORRT_LLM: 8080,
        serving_spec.LLM_SERVICE: 8000,
    }
    return ports.get(served.spec.engine, _METRICS_PORT)


def metrics_path(served: ServedRevision) -> str:
    is_own = served.spec.engine == serving_spec.KSERVE_TENSORRT_LLM
    return tensorrt_llm.METRICS_PATH if is_own else "/metrics"


def _storage(context: ManifestContext) -> list[dict[str, Any]]:
    """Return the bucket, the endpoint for the role's credentials, and a hub of weights."""
    endpoint = urlsplit(context.s3_endpoint)
    own_port = endpoint.port or (_HTTP if endpoint.scheme == "http" else _HTTPS)
    rules = _outside(context, tuple(sorted({_HTTPS, own_port})))
    rules.append(
        {"to": [network_peers.block(_POD_IDENTITY)], "ports": [{"port": _HTTP, "protocol": "TCP"}]}
    )
    inside = network_peers.namespace_of(endpoint.hostname or "")
    if inside:
        # Without a port: policies match the port of the pod, not of its Service.
        rules.append({"to": [network_peers.namespace(inside)]})
    return rules


def _outside(context: ManifestContext, ports: tuple[int, ...]) -> list[dict[str, Any]]:
    if not context.egress_cidrs:
        return []
    listed = [{"port": port, "protocol": "TCP"} for port in ports]
    return [{"to": [network_peers.block(cidr) for cidr in context.egress_cidrs], "ports": listed}]


def _mesh(served: ServedRevision) -> list[dict[str, Any]]:
    """Return the egress to the mesh, from which a sidecar gets its certificate and its routes."""
    return [network_peers.namespace("istio-system")] if served.spec.network.strict_mtls else []


def _dns() -> dict[str, Any]:
    ports = [{"port": 53, "protocol": protocol} for protocol in ("TCP", "UDP")]
    return {
        "to": [network_peers.namespace("kube-system"), network_peers.block(_NODE_LOCAL_DNS)],
        "ports": ports,
    }


def _policy(context: ManifestContext, name: str, spec: dict[str, Any]) -> Manifest:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team}
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": spec,
    }
