"""Karpenter's EC2NodeClasses. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.domain.resource_types import EC2_NODE_CLASS, NODE_POOL
from fleet.kube.services import clients
from fleet.kube.services.ownership import Writer


def list_all(*, cluster_id: int) -> list[dict[str, Any]]:
    """List the EC2NodeClass objects, sorted by name. Empty if the cluster does not serve the kind."""
    try:
        items = clients.client_for(cluster_id).list_all(EC2_NODE_CLASS).items
    except ObjectNotFound:
        return []
    return sorted(items, key=lambda item: str(item["metadata"]["name"]))


def get(*, cluster_id: int, name: str) -> dict[str, Any] | None:
    try:
        return clients.client_for(cluster_id).get(EC2_NODE_CLASS, None, name)
    except ObjectNotFound:
        return None


def patch(
    *, cluster_id: int, name: str, body: Mapping[str, Any], dry_run: bool = False
) -> dict[str, Any]:
    """Apply a merge patch. A dry run stores nothing and returns what would be stored."""
    return Writer(cluster_id).merge_patch(EC2_NODE_CLASS, None, name, body, dry_run=dry_run)


def create(
    *, cluster_id: int, manifest: Mapping[str, Any], dry_run: bool = False
) -> dict[str, Any]:
    """Create a class by server-side apply, so that creating it twice is creating it once."""
    return Writer(cluster_id).apply(manifest, dry_run=dry_run)


def list_pools(*, cluster_id: int, name: str) -> list[str]:
    """Return the NodePools that start nodes of the class, by name."""
    pools = clients.client_for(cluster_id).list_all(NODE_POOL).items
    return sorted(str(item["metadata"]["name"]) for item in pools if _class_of(item) == name)


def _class_of(pool: Mapping[str, Any]) -> str:
    template = ((pool.get("spec") or {}).get("template") or {}).get("spec") or {}
    reference = template.get("nodeClassRef") or {}
    return str(reference.get("name", "")) if reference.get("kind") == "EC2NodeClass" else ""
