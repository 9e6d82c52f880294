"""Heartbeats of nodes: one Lease per node, as the kubelet keeps it."""

from collections.abc import Iterable
from datetime import UTC, datetime

from slipway_localcluster.client.cluster_api import ClusterApi
from slipway_localcluster.errors import JsonObject
from slipway_localcluster.kinds import LEASE

NAMESPACE_NAME = "kube-node-lease"
RENEW_SECONDS = 10.0
_DURATION_SECONDS = 40


def renew(api: ClusterApi, node_names: Iterable[str]) -> None:
    """Renew the leases of nodes. Without renewals Kubernetes marks a node as not ready and evicts its pods."""
    for name in node_names:
        lease = api.find(LEASE, NAMESPACE_NAME, name)
        if lease is None:
            metadata = {"name": name, "namespace": NAMESPACE_NAME}
            api.create(LEASE, {"metadata": metadata, "spec": _spec(name)})
        else:
            api.replace(LEASE, lease | {"spec": (lease.get("spec") or {}) | _spec(name)})


def _spec(name: str) -> JsonObject:
    return {
        "holderIdentity": name,
        "leaseDurationSeconds": _DURATION_SECONDS,
        "renewTime": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ"),
    }
