"""Karpenter's node pools. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.domain.resource_types import NODE_POOL
from fleet.kube.services import clients
from fleet.kube.services.ownership import Writer


def get(*, cluster_id: int, name: str) -> dict[str, Any] | None:
    try:
        return clients.client_for(cluster_id).get(NODE_POOL, None, name)
    except ObjectNotFound:
        return None


def patch(
    *, cluster_id: int, name: str, body: Mapping[str, Any], dry_run: bool = False
) -> dict[str, Any]:
    """Apply a merge patch. A dry run stores nothing and returns what would be stored."""
    return Writer(cluster_id).merge_patch(NODE_POOL, None, name, body, dry_run=dry_run)


def create(
    *, cluster_id: int, manifest: Mapping[str, Any], dry_run: bool = False
) -> dict[str, Any]:
    """Create a pool by server-side apply, so that creating it twice is creating it once."""
    return Writer(cluster_id).apply(manifest, dry_run=dry_run)
