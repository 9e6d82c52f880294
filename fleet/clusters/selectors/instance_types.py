"""Instance types that Slipway knows of."""

from __future__ import annotations

from fleet.clusters.domain.capabilities import Capabilities
from fleet.models import Cluster, InstancePrice, Node

_LABEL = "node.kubernetes.io/instance-type"


def list_known(*, cluster_id: int) -> set[str]:
    """Types from the price list, the cluster's current and former nodes, and its node pools."""
    known = set(InstancePrice.objects.values_list("instance_type", flat=True).distinct())
    nodes = Node.objects.filter(cluster_id=cluster_id).exclude(instance_type="")
    known |= set(nodes.values_list("instance_type", flat=True).distinct())
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    pools = Capabilities.from_json(cluster.capabilities).node_pools if cluster else None
    for pool in pools or ():
        for requirement in pool.requirements:
            if requirement.key == _LABEL and requirement.operator == "In":
                known |= set(requirement.values)
    return known
