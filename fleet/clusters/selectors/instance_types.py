"""Instance types that Slipway knows of."""

from __future__ import annotations

from collections.abc import Iterable

from fleet.clusters.domain.node_pools import NodePool
from fleet.models import InstancePrice, Node

_LABEL = "node.kubernetes.io/instance-type"


def list_known(*, cluster_id: int, pools: Iterable[NodePool]) -> set[str]:
    """Types from the price list, the cluster's current and former nodes, and its node pools."""
    known = set(InstancePrice.objects.values_list("instance_type", flat=True).distinct())
    nodes = Node.objects.filter(cluster_id=cluster_id).exclude(instance_type="")
    known |= set(nodes.values_list("instance_type", flat=True).distinct())
    for pool in pools:
        for requirement in pool.requirements:
            if requirement.key == _LABEL and requirement.operator == "In":
                known |= set(requirement.values)
    return known
