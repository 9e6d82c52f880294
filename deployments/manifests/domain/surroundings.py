"""What stands around a revision's pods: who may disturb, reach, read and impersonate them."""

from __future__ import annotations

from typing import Any

from deployments.manifests.domain import network as policies
from deployments.manifests.domain.metadata import (
    DEPLOYMENT_ID_LABEL,
    REVISION_LABEL,
    WORKLOAD_LABEL,
    Manifest,
    Place,
    Served,
    metadata,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name


def around(place: Place, served: Served) -> list[Manifest]:
    network = served.spec.network
    made = [disruption_budget(place, served), policies.of_workload(place, served)]
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


def peer_authentication(place: Place, served: Served) -> Manifest:
    """Only the mesh may send requests; metrics stay readable without a certificate."""
    port = str(policies.metrics_port(served))
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
    port = "http1" if served.spec.engine == serving_spec.KSERVE_VLLM else "metrics"
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": _metadata(place, served),
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": port, "path": "/metrics", "interval": "15s"}],
        },
    }


def _metadata(place: Place, served: Served) -> dict[str, Any]:
    return metadata(place, workload_name(place.deployment, served.number), served)


def _selector(place: Place, served: Served) -> dict[str, Any]:
    return {"matchLabels": {WORKLOAD_LABEL: workload_name(place.deployment, served.number)}}
