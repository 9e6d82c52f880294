"""Node rows: one per life of a node."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from fleet.models import Cluster, Node
from fleet.observation.domain.parse import ObservedNode

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
    "is_ready",
    "is_schedulable",
    "is_simulated",
)


def write(cluster: Cluster, seen: Sequence[ObservedNode], *, at: datetime) -> list[Node]:
    """Create and update rows; returns those that are new here."""
    rows = {row.uid: row for row in Node.objects.filter(cluster=cluster, uid__in=_uids(seen))}
    newest = {node.uid: node for node in sorted(seen, key=lambda one: one.resource_version)}
    new = [_row(cluster, node, at) for node in newest.values() if node.uid not in rows]
    changed = []
    for row in rows.values():
        node = newest[row.uid]
        is_older = node.resource_version and node.resource_version < row.resource_version
        if not is_older and _differs(row, node):
            _fill(row, node)
            changed.append(row)
    Node.objects.bulk_create(new)
    Node.objects.bulk_update(changed, [*_FIELDS, "resource_version"])
    Node.objects.filter(cluster=cluster, uid__in=_uids(seen), last_seen_at__lt=at).update(
        last_seen_at=at
    )
    return new


def end(cluster: Cluster, gone: Mapping[str, datetime]) -> set[int]:
    """Uid to the time it went; returns the rows that ended now."""
    rows = list(Node.objects.filter(cluster=cluster, uid__in=gone, gone_at=None))
    for row in rows:
        row.gone_at = max(gone[row.uid], row.first_seen_at)
    Node.objects.bulk_update(rows, ["gone_at"])
    return {row.pk for row in rows}


def end_missing(
    cluster: Cluster, version: int, seen: Sequence[ObservedNode], since: datetime
) -> set[int]:
    """Rows newer than the listing are not missing from it: it was read before they were."""
    live = Node.objects.filter(cluster=cluster, gone_at=None)
    if version:
        live = live.filter(resource_version__lte=version)
    here = set(_uids(seen))
    gone = {uid: since for uid in live.values_list("uid", flat=True) if uid not in here}
    return end(cluster, gone)


def _uids(seen: Collection[ObservedNode]) -> list[str]:
    return [node.uid for node in seen]


def _row(cluster: Cluster, node: ObservedNode, at: datetime) -> Node:
    row = Node(
        cluster=cluster,
        uid=node.uid,
        # Its life before the cluster was registered is not Slipway's to account for.
        first_seen_at=max(node.created_at, cluster.created_at),
        last_seen_at=at,
    )
    _fill(row, node)
    return row


def _values(node: ObservedNode) -> dict[str, object]:
    return {
        "name": node.name,
        "instance_type": node.instance_type,
        "capacity_type": node.capacity_type,
        "region": node.region,
        "zone": node.zone,
        "gpu_product": node.gpus.product,
        "gpu_count": node.gpus.count,
        "gpu_memory_mib": node.gpus.memory_mib,
        "allocatable": node.allocatable,
        "labels": node.labels,
        "is_ready": node.is_ready,
        "is_schedulable": node.is_schedulable,
        "is_simulated": node.is_simulated,
    }


def _differs(row: Node, node: ObservedNode) -> bool:
    return any(getattr(row, name) != value for name, value in _values(node).items())


def _fill(row: Node, node: ObservedNode) -> None:
    for name, value in _values(node).items():
        setattr(row, name, value)
    row.resource_version = node.resource_version
