"""The GPUs that device taints take out of nodes: neither held nor offered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import QuerySet

from fleet.gpus.domain import device_taints, shares
from fleet.gpus.domain.device_taints import Blocked
from fleet.models import Node, Pod


def read_blocked_gpus(nodes: QuerySet[Node]) -> dict[int, list[Blocked]]:
    """Return the blocked GPUs by node id. Most nodes have none and are not read."""
    found = nodes.exclude(tainted_gpus=[]).only("tainted_gpus", "gpu_count", "allocatable")
    return by_node(found.order_by())


def by_node(nodes: Iterable[Node]) -> dict[int, list[Blocked]]:
    """Return the blocked GPUs by node id, without nodes that have none."""
    rows = [node for node in nodes if node.tainted_gpus]
    if not rows:
        return {}
    held: dict[int | None, set[tuple[str, str]]] = defaultdict(set)
    pods = Pod.objects.filter(
        node__in=[node.pk for node in rows], gone_at=None, ended_at=None
    ).exclude(devices=[])
    for node_id, devices in pods.values_list("node_id", "devices").order_by():
        held[node_id] |= {(row["pool"], row["device"]) for row in devices}
    blocked_by_node = {}
    for node in rows:
        # What a device plugin offers it still gives away, whatever the driver says.
        at_most = node.gpu_count - _plugin_gpus(node.allocatable)
        stored = device_taints.from_json(node.tainted_gpus)
        if blocked := device_taints.list_blocked(stored, held[node.pk], at_most=at_most):
            blocked_by_node[node.pk] = blocked
    return blocked_by_node


def _plugin_gpus(allocatable: Mapping[str, Any]) -> int:
    amount = str(allocatable.get(shares.WHOLE, "0"))
    return int(amount) if amount.isdigit() else 0
