"""Nodes of a cluster, and the pods on them. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.kube.domain.errors import ObjectConflict, ObjectNotFound
from fleet.kube.domain.resource_types import NODE, POD, Manifest
from fleet.kube.services import clients
from fleet.kube.services.ownership import Writer


def get(*, cluster_id: int, name: str) -> dict[str, Any] | None:
    try:
        return clients.client_for(cluster_id).get(NODE, None, name)
    except ObjectNotFound:
        return None


def patch(*, cluster_id: int, name: str, uid: str, body: Mapping[str, Any]) -> None:
    """Apply a merge patch to this node only. One that replaced it under its name is refused as a conflict."""
    stated: Manifest = {**body, "metadata": {**(body.get("metadata") or {}), "uid": uid}}
    Writer(cluster_id).merge_patch(NODE, None, name, stated)


def list_pods(*, cluster_id: int, name: str) -> list[dict[str, Any]]:
    """List all pods that are bound to the node, of any namespace and phase."""
    return clients.client_for(cluster_id).list_all(POD, fields=f"spec.nodeName={name}").items


def evict(*, cluster_id: int, namespace: str, pod: str, uid: str) -> None:
    """Evict a pod. One that is gone, or was replaced by another of its name, counts as evicted."""
    try:
        Writer(cluster_id).evict(namespace, pod, uid=uid)
    except (ObjectNotFound, ObjectConflict):
        return


def may(*, cluster_id: int, attributes: Mapping[str, str]) -> bool:
    """Whether the cluster allows the portal a verb on a resource."""
    return clients.client_for(cluster_id).may(attributes)
