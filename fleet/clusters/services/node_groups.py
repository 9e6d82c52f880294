"""Managed node groups by cluster id. Raises the errors of fleet.kube.domain.errors."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from fleet.clusters.domain.node_groups import GroupSize, NodeGroup
from fleet.clusters.gateways.node_groups import NodeGroups
from fleet.kube.domain.errors import ObjectNotFound
from fleet.models import Cluster, ClusterKind

_THREADS: Final = 8
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,62}")
# Tests put a fake here; nothing else does.
factory: Callable[[str, str, str], NodeGroups] = NodeGroups


def list_groups(*, cluster_id: int) -> list[NodeGroup]:
    """Return the node groups, sorted by name. Empty if the cluster is not an EKS cluster."""
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.kind != ClusterKind.EKS:
        return []
    gateway = _gateway(cluster)
    names = gateway.list_names()
    if not names:
        return []
    with ThreadPoolExecutor(min(_THREADS, len(names))) as pool:
        return list(pool.map(gateway.describe, names))


def describe(*, cluster_id: int, name: str) -> NodeGroup:
    cluster = Cluster.objects.get(pk=cluster_id)
    if cluster.kind != ClusterKind.EKS:
        raise ObjectNotFound(f"{cluster} is not an EKS cluster, so it has no managed node groups.")
    if not _NAME.fullmatch(name):
        raise ObjectNotFound(f"{name[:40]} cannot be the name of a node group.")
    return _gateway(cluster).describe(name)


def scale(*, cluster_id: int, name: str, size: GroupSize, token: str) -> None:
    _gateway(Cluster.objects.get(pk=cluster_id)).scale(name, size, token=token)


def _gateway(cluster: Cluster) -> NodeGroups:
    return factory(cluster.eks_name, cluster.region, cluster.role_arn)
