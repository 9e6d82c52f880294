"""Dependent objects of a revision: disruption budget, network policy, mTLS and metrics of its pods."""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain import image_pull, pod_placement
from deployments.manifests.domain import network as policies
from deployments.manifests.domain.metadata import (
    DEPLOYMENT_ID_LABEL,
    REVISION_LABEL,
    WORKLOAD_LABEL,
    Manifest,
    ManifestContext,
    ServedRevision,
    metadata,
)
from deployments.spec.domain import serving_spec
from deployments.spec.domain.kubernetes_names import workload_name

# Ten times what a model server exports; one pod that exports without end makes the answer for all pods too large.
_SAMPLE_LIMIT: Final = 10_000


def dependent_objects_of(context: ManifestContext, served: ServedRevision) -> list[Manifest]:
    network = served.spec.network
    manifests = [
        disruption_budget(context, served),
        policies.build_workload_policy(context, served),
    ]
    if served.spec.llm is not None and served.spec.llm.prefix_routing:
        manifests.append(policies.build_endpoint_picker_policy(context, served))
    pods = pod_placement.place(context, served)
    manifests += pods.objects
    if pods.parts.pulls_images:
        manifests.append(image_pull.daemon_set(context, served))
    if network.strict_mtls:
        manifests.append(peer_authentication(context, served))
    if network.service_monitor:
        manifests.append(service_monitor(context, served))
    return manifests


def disruption_budget(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return a budget that lets one pod be unavailable at a time. A stricter one could block draining a node
    for ever, and so would pods that never get ready, if the budget counted them.
    """
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": _metadata(context, served),
        "spec": {
            "maxUnavailable": 1,
            "selector": _selector(context, served),
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        },
    }


def peer_authentication(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the policy that only the mesh may send requests. The metrics port needs no certificate."""
    port = str(policies.metrics_port(served))
    return {
        "apiVersion": "security.istio.io/v1",
        "kind": "PeerAuthentication",
        "metadata": _metadata(context, served),
        "spec": {
            "selector": _selector(context, served),
            "mtls": {"mode": "STRICT"},
            "portLevelMtls": {port: {"mode": "PERMISSIVE"}},
        },
    }


def service_monitor(context: ManifestContext, served: ServedRevision) -> Manifest:
    """Return the ServiceMonitor. It selects the Service by labels, which KServe copies to its own Service. Its
    own labels are those by which the cluster's Prometheus selects it.
    """
    labels = {DEPLOYMENT_ID_LABEL: str(context.deployment_id), REVISION_LABEL: str(served.number)}
    meta = _metadata(context, served)
    is_on_api = served.spec.llm is not None and served.spec.engine in serving_spec.KSERVE_ENGINES
    port = "http1" if is_on_api else "metrics"
    path = policies.metrics_path(served)
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {**meta, "labels": {**dict(context.monitor_labels), **meta["labels"]}},
        "spec": {
            "selector": {"matchLabels": labels},
            "endpoints": [{"port": port, "path": path, "interval": "15s"}],
            "sampleLimit": _SAMPLE_LIMIT,
        },
    }


def _metadata(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    return metadata(context, workload_name(context.deployment, served.number), served)


def _selector(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    return {"matchLabels": {WORKLOAD_LABEL: workload_name(context.deployment, served.number)}}
