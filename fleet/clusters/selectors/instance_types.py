"""Instance types that exist as far as Slipway knows."""

from __future__ import annotations

from fleet.clusters.domain.capabilities import Capabilities
from fleet.models import Cluster, InstancePrice, Node

_LABEL = "node.kubernetes.io/instance-type"


def list_known(*, cluster_id: int) -> set[str]:
    """Of the price list, of the cluster's nodes past and present, and of its node pools."""
    known = set(InstancePrice.objects.values_list("instance_type", flat=True).distinct())
    nodes = Node.objects.filter(cluster_id=cluster_id).exclude(instance_type="")
    known |= set(nodes.values_list("instance_type", flat=True).distinct())
    cluster = Cluster.objects.filter(pk=cluster_id).first()
    pools = Capabilities.from_json(cluster.capabilities).node_pools if cluster else None
    for pool in pools or ():
        for one in pool.requirements:
            if one.key == _LABEL and one.operator == "In":
                known |= set(one.values)
    return known
