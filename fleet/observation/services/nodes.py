"""Node rows: one row per node uid."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from fleet.gpus.domain import devices, instance_types, shares
from fleet.models import Cluster, Node
from fleet.observation.domain.dra import DevicesOfNode
from fleet.observation.domain.parse import ObservedNode
from fleet.observation.services import claimable

_FIELDS = (
    "name",
    "instance_type",
    "capacity_type",
    "region",
    "zone",
    "gpu_product",
    "gpu_count",
    "gpu_memory_mib",
    "allocatable",
    "labels",
    "conditions",
    "taints",
    "is_ready",
    "is_schedulable",
    "is_simulated",
)


def write(cluster: Cluster, observed: Sequence[ObservedNode], *, at: datetime) -> list[Node]:
    """Create and update rows; return the created ones."""
    rows = {row.uid: row for row in Node.objects.filter(cluster=cluster, uid__in=_uids(observed))}
    newest = {node.uid: node for node in sorted(observed, key=lambda node: node.resource_version)}
    unknown = [node for node in newest.values() if node.uid not in rows]
    offered = claimable.read_node_devices(cluster, [node.name for node in unknown])
    new = [_row(cluster, node, offered.get(node.name), at) for node in unknown]
    changed = []
    for row in rows.values():
        node = newest[row.uid]
        is_older = node.resource_version and node.resource_version < row.resource_version
        if not is_older and _differs(row, node):
            _fill(row, node)
            changed.append(row)
    Node.objects.bulk_create(new)
    Node.objects.bulk_update(changed, [*_FIELDS, "resource_version"])
    Node.objects.filter(cluster=cluster, uid__in=_uids(observed), last_seen_at__lt=at).update(
        last_seen_at=at
    )
    return new


def end(cluster: Cluster, gone: Mapping[str, datetime]) -> set[int]:
    """Mark nodes as gone, given as uid and time; return the ids of the rows that ended now."""
    rows = list(Node.objects.filter(cluster=cluster, uid__in=gone, gone_at=None))
    for row in rows:
        row.gone_at = max(gone[row.uid], row.first_seen_at)
    Node.objects.bulk_update(rows, ["gone_at"])
    return {row.pk for row in rows}


def end_missing(
    cluster: Cluster, version: int, observed: Sequence[ObservedNode], since: datetime
) -> set[int]:
    """End rows that are missing from a listing. Rows newer than the listing are left alone."""
    live = Node.objects.filter(cluster=cluster, gone_at=None)
    if version:
        live = live.filter(resource_version__lte=version)
    uids = set(_uids(observed))
    gone = {uid: since for uid in live.values_list("uid", flat=True) if uid not in uids}
    return end(cluster, gone)


def _uids(observed: Collection[ObservedNode]) -> list[str]:
    return [node.uid for node in observed]


def _row(cluster: Cluster, node: ObservedNode, offered: DevicesOfNode | None, at: datetime) -> Node:
    row = Node(
        cluster=cluster,
        uid=node.uid,
        labels=node.labels,
        allocatable=node.allocatable,
        # Time before the cluster was registered is not metered.
        first_seen_at=max(node.created_at, cluster.created_at),
        last_seen_at=at,
    )
    claimable.fill(row, offered)
    _fill(row, node)
    return row


def _values(node: ObservedNode, row: Node) -> dict[str, object]:
    """Return the column values of a node. What it offers by claim comes from its row."""
    gpus = shares.read_gpus(node.labels, node.allocatable, devices.from_json(row.claimable))
    return {
        "name": node.name,
        "instance_type": instance_types.name_of(node.labels, gpus.product),
        "capacity_type": node.capacity_type,
        "region": node.region,
        "zone": node.zone,
        "gpu_product": gpus.product,
        "gpu_count": gpus.count,
        "gpu_memory_mib": gpus.memory_mib,
        "allocatable": node.allocatable,
        "labels": node.labels,
        "conditions": node.conditions,
        "taints": node.taints,
        "is_ready": node.is_ready,
        "is_schedulable": node.is_schedulable,
        "is_simulated": node.is_simulated,
    }


def _differs(row: Node, node: ObservedNode) -> bool:
    return any(getattr(row, name) != value for name, value in _values(node, row).items())


def _fill(row: Node, node: ObservedNode) -> None:
    for name, value in _values(node, row).items():
        setattr(row, name, value)
    row.resource_version = node.resource_version
