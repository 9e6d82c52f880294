"""Nodes that are announced to be taken away or to have a faulty GPU, and the pods on them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db.models import Count, Q
from django.db.models.fields.json import KeyTextTransform

from fleet.models import Node, Pod
from fleet.observation.domain import gpu_errors, node_health, node_notices
from fleet.observation.domain.gpu_errors import GpuError
from fleet.observation.domain.node_notices import Notice
from portal.core import clock

# Readings come each minute.
_KNOWN_FOR: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True)
class NoticedNode:
    id: int
    cluster_name: str
    name: str
    capacity_type: str
    notices: tuple[Notice, ...]


@dataclass(frozen=True, slots=True)
class DeploymentKey:
    cluster_id: int
    namespace: str
    deployment: str


@dataclass(frozen=True, slots=True)
class Exposed:
    """The pods of a deployment: all of them, and those on each of the nodes."""

    pods: int
    on_nodes: Mapping[int, int]


NOT_EXPOSED: Final = Exposed(0, {})


def list_node_notices(node: Node) -> tuple[Notice, ...]:
    """Return the notices of a node. Empty if the node is gone: its last taints are why it went."""
    if node.gone_at is not None:
        return ()
    return node_notices.list_notices(
        node_health.read_taints(node.taints),
        node_health.read_conditions(node.conditions),
        list_gpu_errors(node),
    )


def list_gpu_errors(node: Node) -> tuple[GpuError, ...]:
    """Return the last XID of each GPU. Empty if the reading is too old to say anything about now."""
    at = node.xids_read_at
    is_known = at is not None and clock.now() - at <= _KNOWN_FOR
    return gpu_errors.read(node.xids) if is_known else ()


def list_nodes(*, cluster_id: int | None = None) -> list[NoticedNode]:
    """List the GPU nodes with a notice, by cluster and name. Of thousands, only those that may have one are read."""
    may_have = Q(pk__in=[])
    for key in node_notices.TAINT_KEYS:
        may_have |= Q(taints__icontains=f'"{key}"')
    for mark in node_notices.CONDITION_MARKS:
        may_have |= Q(conditions__icontains=mark)
    may_have |= Q(xids__isnull=False) & ~Q(xids=[])
    rows = Node.objects.filter(may_have, gone_at=None, gpu_count__gt=0)
    if cluster_id is not None:
        rows = rows.filter(cluster_id=cluster_id)
    rows = rows.select_related("cluster").defer("cluster__capabilities", "cluster__serving")
    noticed = [
        NoticedNode(row.pk, row.cluster.name, row.name, row.capacity_type, list_node_notices(row))
        for row in rows.order_by("cluster__name", "name")
    ]
    return [node for node in noticed if node.notices]


def list_exposed_deployments(node_ids: Collection[int]) -> dict[DeploymentKey, Exposed]:
    """Return the deployments with pods on these nodes."""
    if not node_ids:
        return {}
    pods = Pod.objects.filter(ended_at=None, gone_at=None, workload__isnull=False)
    workloads = pods.filter(node_id__in=node_ids).values("workload_id")
    rows = (
        pods.filter(workload_id__in=workloads)
        .annotate(deployment=KeyTextTransform("deployment", "workload__labels"))
        .values_list("cluster_id", "workload__namespace", "deployment", "node_id")
        .annotate(Count("pk"))
        .order_by()
    )
    total: Counter[DeploymentKey] = Counter()
    by_node: dict[DeploymentKey, Counter[int]] = defaultdict(Counter)
    for cluster_id, namespace, deployment, node_id, count in rows:
        key = DeploymentKey(cluster_id, namespace, deployment or "")
        total[key] += count
        if node_id in node_ids:
            by_node[key][node_id] += count
    return {key: Exposed(total[key], nodes) for key, nodes in by_node.items() if key.deployment}
