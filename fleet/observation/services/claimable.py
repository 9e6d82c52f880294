"""Rows of ResourceSlices, and what each node offers by claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from typing import Any, Final

from fleet.gpus.domain import device_taints, devices, shares
from fleet.gpus.domain.device_taints import DeviceTaint, TaintRule
from fleet.gpus.domain.devices import Device
from fleet.models import Cluster, DeviceSlice, Node
from fleet.observation.domain import dra
from fleet.observation.domain.dra import DevicesOfNode, ObservedSlice

_OBSERVED: Final = ("node_name", "pool", "generation", "counters", "resource_version")
_COLUMNS: Final = (*_OBSERVED, "devices", "taints")
_OF_NODE: Final = ("claimable", "tainted_gpus")


def write(cluster: Cluster, observed: Sequence[ObservedSlice], gone: Collection[str]) -> set[str]:
    """Write the observed slices and delete those with the uids `gone`; return the names of nodes that changed."""
    uids = [one.uid for one in observed]
    rows = {row.uid: row for row in DeviceSlice.objects.filter(cluster=cluster, uid__in=uids)}
    new: list[DeviceSlice] = []
    changed: list[DeviceSlice] = []
    names: set[str] = set()
    for one in {item.uid: item for item in observed}.values():
        row = rows.get(one.uid) or DeviceSlice(cluster=cluster, uid=one.uid)
        if row.pk and one.resource_version <= row.resource_version:
            continue
        names |= {name for name in (row.node_name, one.node_name) if name}
        for column in _OBSERVED:
            setattr(row, column, getattr(one, column))
        row.devices = [asdict(device) for device in one.devices]
        row.taints = [[name, asdict(taint)] for name, taint in one.taints]
        (changed if row.pk else new).append(row)
    DeviceSlice.objects.bulk_create(new)
    DeviceSlice.objects.bulk_update(changed, _COLUMNS)
    return names | _delete(DeviceSlice.objects.filter(cluster=cluster, uid__in=gone))


def delete_missing(cluster: Cluster, version: int, observed: Iterable[ObservedSlice]) -> set[str]:
    """Delete rows that are missing from a listing, unless they are newer than it."""
    rows = DeviceSlice.objects.filter(cluster=cluster)
    if version:
        rows = rows.filter(resource_version__lte=version)
    return _delete(rows.exclude(uid__in=[one.uid for one in observed]))


def read_node_devices(cluster: Cluster, names: Collection[str]) -> dict[str, DevicesOfNode]:
    """Return what each of these nodes offers by claim, by node name. Nodes without slices are left out."""
    if not names:
        return {}
    by_name: dict[str, list[ObservedSlice]] = defaultdict(list)
    for row in DeviceSlice.objects.filter(cluster=cluster, node_name__in=names):
        by_name[row.node_name].append(_stored(row))
    rules = device_taints.rules_from_json(cluster.device_taint_rules)
    return {name: dra.collect_node_devices(slices, rules) for name, slices in by_name.items()}


def fill(node: Node, offered: DevicesOfNode | None) -> None:
    """Set what it offers by claim, and what taints take of it. None: nothing now."""
    if offered is None:
        before = devices.from_json(node.claimable).withdrawn()
        gpus = shares.read_gpus(node.labels, node.allocatable, before)
        node.claimable = before.to_json()
        node.tainted_gpus = device_taints.to_json(device_taints.withdrawn_gpus(before, gpus))
        return
    gpus = shares.read_gpus(node.labels, node.allocatable, offered.devices)
    tainted = device_taints.list_tainted_gpus(offered.devices, offered.taints, gpus)
    node.claimable = offered.devices.to_json()
    node.tainted_gpus = device_taints.to_json(tainted)


def write_rules(cluster: Cluster, rules: Sequence[TaintRule]) -> bool:
    """Write the DeviceTaintRules of the cluster. Returns whether they changed; what nodes offer follows from them."""
    stored = [asdict(rule) for rule in rules]
    if stored == cluster.device_taint_rules:
        return False
    cluster.device_taint_rules = stored
    Cluster.objects.filter(pk=cluster.pk).update(device_taint_rules=stored)
    slices = DeviceSlice.objects.filter(cluster=cluster)
    update_nodes(cluster, set(slices.values_list("node_name", flat=True)))
    return True


def update_nodes(cluster: Cluster, names: Collection[str]) -> None:
    """Write what these nodes offer now, and what follows from it."""
    offered = read_node_devices(cluster, names)
    nodes = list(Node.objects.filter(cluster=cluster, gone_at=None, name__in=names))
    for node in nodes:
        # Without a label of an instance type, the product stands for it.
        is_named_after_product = node.instance_type == node.gpu_product[:40]
        fill(node, offered.get(node.name))
        gpus = shares.read_node(node)
        node.gpu_count, node.gpu_memory_mib = gpus.count, gpus.memory_mib
        node.gpu_product = gpus.product
        if is_named_after_product:
            node.instance_type = gpus.product[:40]
    Node.objects.bulk_update(
        nodes, [*_OF_NODE, "gpu_count", "gpu_memory_mib", "gpu_product", "instance_type"]
    )


def _delete(rows: Any) -> set[str]:
    names = set(rows.values_list("node_name", flat=True))
    if names:
        rows.delete()
    return names


def _stored(row: DeviceSlice) -> ObservedSlice:
    return ObservedSlice(
        uid=row.uid,
        resource_version=row.resource_version,
        node_name=row.node_name,
        pool=row.pool,
        generation=row.generation,
        counters=row.counters,
        devices=tuple(Device(**device) for device in row.devices),
        taints=tuple((name, DeviceTaint(**taint)) for name, taint in row.taints),
    )


def devices_in(
    cluster: Cluster, pools: Collection[str]
) -> dict[tuple[str, str], tuple[Device, Node]]:
    """Return the devices of these pools with their node, by pool and name."""
    slices = DeviceSlice.objects.filter(cluster=cluster, pool__in=pools)
    names = set(slices.values_list("node_name", flat=True))
    nodes = Node.objects.filter(cluster=cluster, gone_at=None, name__in=names)
    return {
        device.key: (device, node)
        for node in nodes
        for device in devices.from_json(node.claimable).all
    }
