"""The units of GPU resources on nodes, and those that named deployments hold: what decides whether a waiter can start."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from django.db.models import Q, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform

from fleet.capacity.domain import node_taints
from fleet.capacity.domain.waiting import NodeUnits
from fleet.models import Node, Pod
from fleet.observation.domain import node_health

_FACTS = (
    *("pk", "cluster_id", "instance_type", "gpu_product", "capacity_type"),
    *("is_ready", "is_schedulable", "taints"),
)


def list_node_units(clusters: Collection[int], resources: Sequence[str]) -> list[NodeUnits]:
    """List what the nodes of these clusters offer of these resources, in two queries. Free is what an ordinary pod
    gets: nothing of a node that is cordoned, not ready or reserved by a taint.
    """
    present = Node.objects.filter(cluster__in=clusters, gone_at=None, gpu_count__gt=0).order_by()
    offered = [KeyTextTransform(resource, "allocatable") for resource in resources]
    rows = present.annotate(
        **{f"units_{place}": transform for place, transform in enumerate(offered)}
    ).values_list(*_FACTS, *(f"units_{place}" for place in range(len(offered))))
    taken = _list_taken(clusters, resources)
    units = []
    for pk, cluster_id, instance_type, product, capacity_type, *rest in rows:
        is_ready, is_schedulable, taints, *amounts = rest
        is_open = (
            is_ready
            and is_schedulable
            and not (
                taints
                and node_taints.list_reserving_taints(
                    node_health.read_taints(taints),
                    gpu_product=product,
                    capacity_type=capacity_type,
                )
            )
        )
        for resource, amount in zip(resources, amounts, strict=True):
            whole = int(amount) if amount and str(amount).isdigit() else 0
            if whole:
                free = max(0, whole - taken[pk, resource]) if is_open else 0
                units.append(NodeUnits(cluster_id, instance_type, resource, whole, free))
    return units


def list_held_units(
    clusters: Collection[int], resources: Sequence[str], holders: Collection[tuple[str, str]]
) -> list[tuple[int, str, str, str, str, int]]:
    """List what these deployments, given by team and name, hold of the resources: cluster, team, deployment, resource,
    instance type and units.
    """
    named = Q(pk__in=[])
    for team_slug, name in holders:
        named |= Q(workload__team__slug=team_slug, workload__labels__deployment=name)
    pods = _running(clusters, resources).filter(named)
    rows = pods.values_list(
        *("cluster_id", "workload__team__slug"),
        KeyTextTransform("deployment", "workload__labels"),
        *("gpu_resource", "node__instance_type"),
    )
    return list(rows.annotate(Sum("gpu_units")).order_by())


def _list_taken(clusters: Collection[int], resources: Sequence[str]) -> dict[tuple[int, str], int]:
    rows = _running(clusters, resources).values_list("node_id", "gpu_resource")
    taken: dict[tuple[int, str], int] = defaultdict(int)
    for node_id, resource, units in rows.annotate(Sum("gpu_units")).order_by():
        taken[node_id, resource] = units
    return taken


def _running(clusters: Collection[int], resources: Sequence[str]) -> QuerySet[Pod]:
    pods = Pod.objects.filter(cluster__in=clusters, gpu_resource__in=resources, gone_at=None)
    return pods.filter(ended_at=None).exclude(node=None)
