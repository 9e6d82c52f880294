"""The size of a node pool, of either kind, and what becomes of it outside office hours.

A size is what AWS or the cluster states: `min_size`, `max_size` and `desired_size` of a node group,
`replicas` of a static NodePool, `gpu_limit` of another one (a Kubernetes quantity; None: no limit).
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from fleet.gpus.domain.shares import WHOLE

GPU_LIMIT: Final = "gpu_limit"
REPLICAS: Final = "replicas"
DESIRED: Final = "desired_size"

Size = Mapping[str, Any]


class PoolKind(StrEnum):
    """Karpenter's NodePools, and the managed node groups of EKS."""

    NODE_POOL = "node pool"
    NODE_GROUP = "node group"

    @property
    def node_label(self) -> str:
        """The label with the pool's name on each of its nodes."""
        if self is PoolKind.NODE_POOL:
            return "karpenter.sh/nodepool"
        return "eks.amazonaws.com/nodegroup"

    @property
    def slug(self) -> str:
        """The kind as URLs have it."""
        return self.value.replace(" ", "-")


def kind_of_slug(slug: str) -> PoolKind | None:
    return next((kind for kind in PoolKind if kind.slug == slug), None)


def read_node_pool(live: Mapping[str, Any]) -> dict[str, Any]:
    """Return the size of a live NodePool: its replicas, or else its GPU limit."""
    spec = live.get("spec") or {}
    if spec.get(REPLICAS) is not None:
        return {REPLICAS: int(spec[REPLICAS])}
    limit = (spec.get("limits") or {}).get(WHOLE)
    return {GPU_LIMIT: None if limit is None else str(limit)}


def patch(size: Size) -> dict[str, Any]:
    """Return the merge patch that gives a NodePool this size."""
    if REPLICAS in size:
        return {"spec": {REPLICAS: size[REPLICAS]}}
    return {"spec": {"limits": {WHOLE: size[GPU_LIMIT]}}}


def compute_closed_size(size: Size, closed_size: int) -> dict[str, Any]:
    """Return the size outside office hours, never more than `size` itself. A node group cannot have a maximum below
    1.
    """
    if REPLICAS in size:
        return {REPLICAS: min(closed_size, int(size[REPLICAS]))}
    if GPU_LIMIT in size:
        limit = str(size[GPU_LIMIT] if size[GPU_LIMIT] is not None else "")
        return {GPU_LIMIT: str(min(closed_size, int(limit)) if limit.isdigit() else closed_size)}
    desired = min(closed_size, int(size[DESIRED]))
    return {
        "min_size": min(desired, int(size["min_size"])),
        "max_size": min(max(desired, 1), int(size["max_size"])),
        DESIRED: desired,
    }


def describe(size: Size | None) -> str:
    """Describe a size for people: "4 nodes (1 to 6)" or "GPU limit 8", for example."""
    if not size:
        return "not known"
    if REPLICAS in size:
        return _counted(int(size[REPLICAS]))
    if GPU_LIMIT in size:
        return "no GPU limit" if size[GPU_LIMIT] is None else f"GPU limit {size[GPU_LIMIT]}"
    return f"{_counted(int(size[DESIRED]))} ({size['min_size']} to {size['max_size']})"


def _counted(nodes: int) -> str:
    return "1 node" if nodes == 1 else f"{nodes} nodes"
