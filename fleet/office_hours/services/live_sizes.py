"""The size of a node pool as AWS or the cluster has it now. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from fleet.clusters.domain.node_groups import UPDATING, GroupSize
from fleet.clusters.services import node_groups
from fleet.kube.domain.errors import ObjectNotFound
from fleet.kube.services import node_pools
from fleet.office_hours.domain import sizes
from fleet.office_hours.domain.sizes import PoolKind, Size


@dataclass(frozen=True, slots=True)
class LiveSize:
    """The size of a pool now. `is_busy` is true while AWS is updating the group, so that it cannot be scaled now."""

    size: dict[str, Any]
    is_busy: bool = False


def read(*, cluster_id: int, kind: str, name: str) -> LiveSize:
    if kind == PoolKind.NODE_GROUP:
        group = node_groups.describe(cluster_id=cluster_id, name=name)
        return LiveSize(dict(group.size.to_json()), group.status == UPDATING)
    live = node_pools.get(cluster_id=cluster_id, name=name)
    if live is None:
        raise ObjectNotFound(f"Node pool {name} does not exist.")
    return LiveSize(sizes.read_node_pool(live))


def write(*, cluster_id: int, kind: str, name: str, size: Size, token: str) -> None:
    """Write the size of a pool. Repeating it with the same token changes nothing more."""
    if kind == PoolKind.NODE_GROUP:
        desired = GroupSize.from_json(size)
        node_groups.scale(cluster_id=cluster_id, name=name, size=desired, token=token)
        return
    node_pools.patch(cluster_id=cluster_id, name=name, body=sizes.patch(size))
