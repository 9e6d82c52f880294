"""What stands around a revision's pods: who may disturb, reach, read and impersonate them."""

from __future__ import annotations

from typing import Any

from deployments.domain import specs
from deployments.domain.manifests.parts import (
    DEPLOYMENT_ID_LABEL,
    REVISION_LABEL,
    WORKLOAD_LABEL,
    Manifest,
    Place,
    Served,
    metadata,
)
from deployments.domain.names import workload_name

_METRICS_PORT = 8002
_NAMESPACE_NAME = "kubernetes.io/metadata.name"


def around(place: Place, served: Served) -> list[Manifest]:
    spec, network = served.spec, served.spec.network
    made = []
    if spec.engine in specs.PLAIN_ENGINES or not spec.is_first_schema:
        made.append(disruption_budget(place, served))
    if network.network_policy:
        made.append(network_policy(place, served))
    if network.strict_mtls:
        made.append(peer_authentication(place, served))
    if network.service_monitor:
        made.append(service_monitor(place, served))
    return made


def disruption_budget(place: Place, served: Served) -> Manifest:
    """One pod at a time; never a budget that would block draining a node for ever."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(place, served),
        "spec": {"maxUnavailable": 1, "selector": _selector(place, served)},
    }


def network_policy(place: Place, served: Served) -> Manifest:
    """Requests come from the gateway, the own namespace and the mesh of KServe; whoever scrapes may
    come from anywhere, because metrics are read through the API server too. Nothing stops what goes
    out: models are fetched from S3.
    """
    gateways = [place.gateway_namespace]
    if served.spec.scaling.kind == specs.KNATIVE:
        gateways.append("knative-serving")
    allowed: list[dict[str, Any]] = [{"podSelector": {}}]
    allowed += [
        {"namespaceSelector": {"matchLabels": {_NAMESPACE_NAME: name}}} for name in gateways
    ]
    metrics = {"port": _metrics_port(served), "protocol": "TCP"}
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": _metadata(place, served),
        "spec": {
            "podSelector": _selector(place, served),
            "policyTypes": ["Ingress"],
            "ingress": [{"from": allowed}, {"ports": [metrics]}],
        },
    }


def peer_authentication(place: Place, served: Served) -> Manifest:
    """Only the mesh may send requests; metrics stay readable without a certificate."""
    port = str(_metrics_port(served))
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "PeerAuthentication",
        "metadata": _metadata(place, served),
        "spec": {
            "selector": _selector(place, served),
            "mtls": {"mode": "STRICT"},
            "portLevelMtls": {port: {"mode": "PERMISSIVE"}},
        },
    }


def service_monitor(place: Place, served: Served) -> Manifest:
    """Finds the Service by labels that KServe copies to its own."""
    labels = {DEPLOYMENT_ID_LABEL: str(place.deployment_id), REVISION_LABEL: str(served.number)}
    port = "http1" if served.spec.engine == specs.KSERVE_VLLM else "metrics"
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": _metadata(place, served),
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": port, "path": "/metrics", "interval": "15s"}],
        },
    }


def _metrics_port(served: Served) -> int:
    """vLLM tells its metrics where it answers."""
    ports = {specs.KSERVE_VLLM: 8080, specs.LLM_SERVICE: 8000}
    return ports.get(served.spec.engine, _METRICS_PORT)


def _metadata(place: Place, served: Served) -> dict[str, Any]:
    return metadata(place, workload_name(place.deployment, served.number), served)


def _selector(place: Place, served: Served) -> dict[str, Any]:
    return {"matchLabels": {WORKLOAD_LABEL: workload_name(place.deployment, served.number)}}
