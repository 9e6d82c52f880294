"""Network policies: pods of a team reach, and are reached by, only what serving needs."""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from deployments.manifests.domain import tensorrt_llm
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

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_VERSION: Final = "networking.k8s.io/v1"
_KIND: Final = "NetworkPolicy"
_NAMESPACE_NAME: Final = "kubernetes.io/metadata.name"
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
# The node's own credentials are served at one of these addresses.
_LINK_LOCAL: Final = ("169.254.0.0/16", "fe80::/10", "fd00:ec2::/32")


def default_deny(context: ManifestContext) -> Manifest:
    """For every pod in the namespace, whoever created it."""
    return _policy(
        context,
        "slipway-default-deny",
        {"podSelector": {}, "policyTypes": ["Egress", "Ingress"], "egress": [_dns()]},
    )


def pipelines(context: ManifestContext) -> Manifest:
    """Routers of pipelines receive requests from the gateway and send theirs through it."""
    gateways = [_namespace(name) for name in _gateways(context)]
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
    """Metrics are read as those of deployments are, through the API server too."""
    metrics = {"port": _METRICS_PORT, "protocol": "TCP"}
    return _of_jobs(context, "slipway-batch", BATCH_LABEL, ingress=[{"ports": [metrics]}])


def queue_of(
    context: ManifestContext, name: str, *, servers: Sequence[tuple[str, int]]
) -> Manifest:
    """The workers of one job reach the hosts and ports of the queue that it drains, beside what all jobs reach."""
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
    inside = _namespace_of(host)
    if not inside:
        return _outside(context, (port,))
    # Policies match the port of the pod, not of its Service.
    if inside == context.namespace:
        return [{"to": [_namespace(inside)]}]
    return [{"to": [_namespace(inside)], "ports": [{"port": port, "protocol": "TCP"}]}]


def _of_jobs(
    context: ManifestContext, name: str, label: str, *, ingress: list[dict[str, Any]]
) -> Manifest:
    """Their pods read and write files, and they accept no requests."""
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


def of_workload(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Ingress from the gateway, the pod's own namespace and KServe's mesh; to the metrics port from
    anywhere, because metrics are read through the API server too. Egress to the other pods of the
    revision and to the sources of models.
    """
    gateways = _gateways(context)
    if served.spec.scaling.kind == serving_spec.KNATIVE:
        gateways.append("knative-serving")
    allowed: list[dict[str, Any]] = [{"podSelector": {}}, *map(_namespace, gateways)]
    metrics = {"port": metrics_port(served), "protocol": "TCP"}
    name = workload_name(context.deployment, served.number)
    selector = {"matchLabels": {WORKLOAD_LABEL: name}}
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": metadata(context, name, served),
        "spec": {
            "podSelector": selector,
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"from": allowed}, {"ports": [metrics]}, *_control_plane(context, served)],
            "egress": [
                _dns(),
                {"to": [{"podSelector": selector}, *_mesh(served)]},
                *_storage(context),
            ],
        },
    }


def of_endpoint_picker(context: ManifestContext, served: ServedRevision) -> Manifest:
    """KServe's endpoint picker of the revision: the gateway queries it for a pod; it reads metrics of the
    revision's pods, and pool and pods from the API server.
    """
    workload = workload_name(context.deployment, served.number)
    models = {"podSelector": {"matchLabels": {WORKLOAD_LABEL: workload}}}
    ports = [{"port": port, "protocol": "TCP"} for port in _API_SERVER_PORTS]
    networks = [_block(cidr) for cidr in (*context.control_plane_cidrs, *context.egress_cidrs)]
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": metadata(context, f"{workload}-picker", served),
        "spec": {
            "podSelector": {"matchLabels": {_NAME_LABEL: workload, _COMPONENT_LABEL: _PICKER}},
            "policyTypes": ["Egress", "Ingress"],
            "ingress": [{"from": [_namespace(name) for name in _gateways(context)]}],
            "egress": [
                _dns(),
                {"to": [models]},
                *([{"to": networks, "ports": ports}] if networks else []),
            ],
        },
    }


def _gateways(context: ManifestContext) -> list[str]:
    return list(dict.fromkeys([context.gateway_namespace, *context.proxy_namespaces]))


def _control_plane(context: ManifestContext, served: ServedRevision) -> list[dict[str, Any]]:
    """Golden requests and trials come through the API server, which no label selects."""
    if not context.control_plane_cidrs:
        return []
    serving = {
        "port": 8000 if served.spec.engine == serving_spec.LLM_SERVICE else 8080,
        "protocol": "TCP",
    }
    return [{"from": [_block(cidr) for cidr in context.control_plane_cidrs], "ports": [serving]}]


def metrics_port(served: ServedRevision) -> int:
    """Servers of language models serve metrics on the port of their API."""
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
    """The bucket, the endpoint for the role's credentials, and a hub of weights."""
    endpoint = urlsplit(context.s3_endpoint)
    own_port = endpoint.port or (_HTTP if endpoint.scheme == "http" else _HTTPS)
    rules = _outside(context, tuple(sorted({_HTTPS, own_port})))
    rules.append({"to": [_block(_POD_IDENTITY)], "ports": [{"port": _HTTP, "protocol": "TCP"}]})
    inside = _namespace_of(endpoint.hostname or "")
    if inside:
        # Without a port: policies match the port of the pod, not of its Service.
        rules.append({"to": [_namespace(inside)]})
    return rules


def _outside(context: ManifestContext, ports: tuple[int, ...]) -> list[dict[str, Any]]:
    if not context.egress_cidrs:
        return []
    listed = [{"port": port, "protocol": "TCP"} for port in ports]
    return [{"to": [_block(cidr) for cidr in context.egress_cidrs], "ports": listed}]


def _block(cidr: str) -> dict[str, Any]:
    """An address block without link-local addresses: there a pod could get the node's own identity."""
    block: dict[str, Any] = {"cidr": cidr}
    excluded = _link_local_inside(cidr)
    return {"ipBlock": {**block, "except": list(excluded)} if excluded else block}


@lru_cache(maxsize=1024)
def _link_local_inside(cidr: str) -> tuple[str, ...]:
    """Cached, because parsing addresses took a quarter of the time to render a revision."""
    network = ipaddress.ip_network(cidr)
    return tuple(part for part in _LINK_LOCAL if _is_inside(ipaddress.ip_network(part), network))


def _is_inside(part: Network, network: Network) -> bool:
    if isinstance(part, ipaddress.IPv4Network):
        is_subnet = isinstance(network, ipaddress.IPv4Network) and part.subnet_of(network)
    else:
        is_subnet = isinstance(network, ipaddress.IPv6Network) and part.subnet_of(network)
    return is_subnet and part != network


def _namespace_of(host: str) -> str:
    """The namespace of a Service's name: minio.storage.svc.cluster.local; else empty."""
    parts = host.split(".")
    return parts[1] if len(parts) > 2 and parts[2] == "svc" else ""


def _mesh(served: ServedRevision) -> list[dict[str, Any]]:
    """A sidecar gets its certificate and its routes from there."""
    return [_namespace("istio-system")] if served.spec.network.strict_mtls else []


def _dns() -> dict[str, Any]:
    ports = [{"port": 53, "protocol": protocol} for protocol in ("TCP", "UDP")]
    return {"to": [_namespace("kube-system"), _block(_NODE_LOCAL_DNS)], "ports": ports}


def _namespace(name: str) -> dict[str, Any]:
    return {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}}


def _policy(context: ManifestContext, name: str, spec: dict[str, Any]) -> Manifest:
    labels = {**MANAGED_BY, "slipway.dev/team": context.team}
    return {
        "apiVersion": _VERSION,
        "kind": _KIND,
        "metadata": {"name": name, "namespace": context.namespace, "labels": labels},
        "spec": spec,
    }
