"""What taints of devices take from nodes: neither held nor offered."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from django.db.models import QuerySet

from fleet.gpus.domain import device_taints, shares
from fleet.gpus.domain.device_taints import Blocked
from fleet.models import Node, Pod


def by_node(nodes: QuerySet[Node]) -> dict[int, list[Blocked]]:
    """By id; most nodes have none and are not read."""
    rows = list(
        nodes.exclude(tainted_gpus=[]).values_list(
            "pk", "tainted_gpus", "gpu_count", "allocatable"
        )
    )
    if not rows:
        return {}
    held: dict[int | None, set[tuple[str, str]]] = defaultdict(set)
    pods = Pod.objects.filter(
        node__in=[pk for pk, *_ in rows], gone_at=None, ended_at=None
    ).exclude(devices=[])
    for node_id, devices in pods.values_list("node_id", "devices").order_by():
        held[node_id] |= {(row["pool"], row["device"]) for row in devices}
    found = {}
    for pk, stored, gpu_count, allocatable in rows:
        # What a device plugin offers it still gives away, whatever the driver says.
        at_most = gpu_count - _plugin_gpus(allocatable)
        blocked = device_taints.blocked(
            device_taints.from_json(stored), held[pk], at_most=at_most
        )
        if blocked:
            found[pk] = blocked
    return found


def _plugin_gpus(allocatable: Mapping[str, Any]) -> int:
    amount = str(allocatable.get(shares.WHOLE, "0"))
    return int(amount) if amount.isdigit() else 0
