"""Karpenter's node pools as the clusters last listed them, and what the portal knows of their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from fleet.clusters.domain.node_pools import KarpenterRequirement, NodePool
from fleet.clusters.selectors import clusters
from fleet.clusters.selectors.clusters import ClusterInfo
from fleet.models import Node
from fleet.office_hours.domain.sizes import PoolKind
from fleet.office_hours.selectors import office_hours
from fleet.office_hours.selectors.office_hours import KeptHours

_SIGNS: Final[Mapping[str, str]] = {"NotIn": "not", "Gt": "above", "Lt": "below"}


@dataclass(frozen=True, slots=True)
class PoolRow:
    """A node pool in the list. `nodes` are those that the portal observes."""

    cluster: ClusterInfo
    pool: NodePool
    nodes: int
    hours: KeptHours | None

    @property
    def rules(self) -> list[str]:
        return [_describe(requirement) for requirement in self.pool.requirements]


@dataclass(frozen=True, slots=True)
class ClusterPools:
    """The node pools of a cluster. `rows` is None if it has no Karpenter, or the portal may not list its pools."""

    cluster: ClusterInfo
    rows: tuple[PoolRow, ...] | None


def list_pools(cluster_id: int | None = None) -> list[ClusterPools]:
    """Return the pools of each cluster, sorted by name. Everyone may see them, as everyone sees nodes."""
    known = clusters.list_clusters() if cluster_id is None else [clusters.get_cluster(cluster_id)]
    return [_of_cluster(cluster) for cluster in known]


def _of_cluster(cluster: ClusterInfo) -> ClusterPools:
    pools = cluster.capabilities.node_pools
    if pools is None:
        return ClusterPools(cluster, None)
    labels = Node.objects.filter(cluster=cluster.id, gone_at=None).values_list("labels", flat=True)
    counted = Counter(str(of_node.get(PoolKind.NODE_POOL.node_label, "")) for of_node in labels)
    hours = office_hours.by_name(cluster_id=cluster.id, kind=PoolKind.NODE_POOL)
    rows = tuple(PoolRow(cluster, pool, counted[pool.name], hours.get(pool.name)) for pool in pools)
    return ClusterPools(cluster, rows)


def _describe(requirement: KarpenterRequirement) -> str:
    key = requirement.key.rpartition("/")[2]
    values = ", ".join(requirement.values)
    if requirement.operator in ("Exists", "DoesNotExist"):
        return f"{key}: {'any' if requirement.operator == 'Exists' else 'none'}"
    sign = _SIGNS.get(requirement.operator, "")
    return f"{key}: {sign} {values}".replace(":  ", ": ")
