"""Instance types that Slipway knows of."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import QuerySet
from django.db.models.fields.json import KeyTextTransform

from fleet.clusters.domain.node_pools import NodePool
from fleet.gpus.domain import instance_types
from fleet.models import InstancePrice, Node


def list_known(*, cluster_id: int, pools: Iterable[NodePool]) -> set[str]:
    """List the types from the price list, the cluster's current and former nodes, and its node pools, without those
    that no node is labelled with.
    """
    known = set(InstancePrice.objects.values_list("instance_type", flat=True).distinct())
    for pool in pools:
        for requirement in pool.requirements:
            if requirement.key == instance_types.LABEL and requirement.operator == "In":
                known |= set(requirement.values)
    labelled, unlabelled = _of_nodes(Node.objects.filter(cluster_id=cluster_id))
    return (known - unlabelled) | labelled


def list_unlabelled(*, cluster_id: int) -> dict[str, list[str]]:
    """List the GPU products that nodes of the cluster are named after, with these nodes: pods cannot require them."""
    nodes = Node.objects.filter(cluster_id=cluster_id, gone_at=None, gpu_count__gt=0)
    by_product: dict[str, list[str]] = {}
    for name, kind, product, label in _rows(nodes).order_by("name"):
        if not _is_requestable(kind, product, label):
            by_product.setdefault(kind or product, []).append(name)
    return by_product


def _of_nodes(nodes: QuerySet[Node]) -> tuple[set[str], set[str]]:
    """Return the types that nodes are labelled with, and those that only stand for a product."""
    labelled: set[str] = set()
    unlabelled: set[str] = set()
    for _, kind, product, label in _rows(nodes.exclude(instance_type="")):
        (labelled if _is_requestable(kind, product, label) else unlabelled).add(kind)
    return labelled, unlabelled - labelled


def _rows(nodes: QuerySet[Node]) -> QuerySet[Node, tuple[str, str, str, str | None]]:
    label = KeyTextTransform(instance_types.LABEL, "labels")
    return nodes.order_by().values_list("name", "instance_type", "gpu_product", label)


def _is_requestable(kind: str, product: str, label: str | None) -> bool:
    return instance_types.is_requestable(kind, product, {instance_types.LABEL: label or ""})
