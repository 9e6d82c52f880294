"""Parse ResourceSlices and ResourceClaims (`resource.k8s.io/v1`) into what is kept of NVIDIA's DRA driver."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from fleet.gpus.domain import devices
from fleet.gpus.domain.device_taints import DeviceTaint, TaintRule
from fleet.gpus.domain.devices import Counters, Device, Devices
from fleet.kube.domain import quantities
from fleet.observation.domain import parse, taint_rules

Json = Mapping[str, Any]
_KINDS: Final = (devices.GPU, devices.MIG)
_MIB: Final = 1024**2


@dataclass(frozen=True, slots=True)
class ObservedSlice:
    """A part of a pool. Of a pool only the slices of its highest generation count."""

    uid: str
    resource_version: int
    node_name: str
    pool: str
    generation: int
    counters: Counters
    devices: tuple[Device, ...]
    # With the name of the device.
    taints: tuple[tuple[str, DeviceTaint], ...] = ()


@dataclass(frozen=True, slots=True)
class DevicesOfNode:
    """The devices of a node. `taints` are by pool and name of the device: those of the driver and of the cluster's
    rules.
    """

    devices: Devices
    taints: dict[tuple[str, str], list[DeviceTaint]]


@dataclass(frozen=True, slots=True)
class Allocated:
    """A device that a claim holds. `memory_mib` is the part of a device that several claims share; None means all
    of it.
    """

    pool: str
    device: str
    memory_mib: int | None = None


@dataclass(frozen=True, slots=True)
class ObservedClaim:
    """An allocated claim. Of several pods that share it the first one holds it; none: `pod_uid` is empty."""

    uid: str
    resource_version: int
    namespace: str
    name: str
    pod_uid: str
    pod_name: str
    allocated: tuple[Allocated, ...]


def resource_slice(item: Json) -> ObservedSlice | None:
    """Read a ResourceSlice. None for a slice of another driver, and for one that is not of a single node."""
    spec = item["spec"]
    node_name = spec.get("nodeName") or ""
    if spec.get("driver") != devices.DRIVER or not node_name:
        return None
    pool = spec["pool"]
    parsed = (_device(pool["name"], device) for device in spec.get("devices") or ())
    return ObservedSlice(
        uid=item["metadata"]["uid"],
        resource_version=parse.resource_version(item),
        node_name=node_name,
        pool=pool["name"],
        generation=int(pool.get("generation", 0)),
        counters=_counters((row["name"], row) for row in spec.get("sharedCounters") or ()),
        devices=tuple(device for device in parsed if device.kind in _KINDS),
        taints=tuple(
            (device["name"], taint)
            for device in spec.get("devices") or ()
            for taint in taint_rules.read_taints(device)
        ),
    )


def claim(item: Json) -> ObservedClaim | None:
    """Read a ResourceClaim. None if it holds no GPU: it is not allocated, of another driver, or only monitors
    (adminAccess).
    """
    status = item.get("status") or {}
    results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
    allocated = tuple(
        Allocated(result["pool"], result["device"], _memory_of(result.get("consumedCapacity")))
        for result in results
        if result.get("driver") == devices.DRIVER and not result.get("adminAccess")
    )
    if not allocated:
        return None
    pods = [row for row in status.get("reservedFor") or () if row.get("resource") == "pods"]
    holder = pods[0] if pods else {}
    metadata = item["metadata"]
    return ObservedClaim(
        uid=metadata["uid"],
        resource_version=parse.resource_version(item),
        namespace=metadata["namespace"],
        name=metadata["name"],
        pod_uid=str(holder.get("uid", "")),
        pod_name=str(holder.get("name", "")),
        allocated=allocated,
    )


def collect_node_devices(
    slices: Iterable[ObservedSlice], rules: Sequence[TaintRule] = ()
) -> DevicesOfNode:
    """Return the devices of a node from all its slices, of each pool those of the highest generation."""
    by_pool: dict[str, list[ObservedSlice]] = defaultdict(list)
    for one in slices:
        by_pool[one.pool].append(one)
    newest = [
        one
        for pool in sorted(by_pool)
        for one in by_pool[pool]
        if one.generation == max(other.generation for other in by_pool[pool])
    ]
    counters = {name: amounts for one in newest for name, amounts in one.counters.items()}
    found = {device.key: device for one in newest for device in one.devices}
    taints: dict[tuple[str, str], list[DeviceTaint]] = defaultdict(list)
    for one in newest:
        for name, taint in one.taints:
            taints[one.pool, name].append(taint)
    for device in found.values() if rules else ():
        taints[device.key] += [rule.taint for rule in rules if rule.matches(device)]
    kept = {key: own for key, own in taints.items() if own and key in found}
    offered = [
        replace(device, is_healthy=False) if key in kept else device
        for key, device in found.items()
    ]
    return DevicesOfNode(Devices(tuple(sorted(offered, key=_order)), counters), kept)


def _order(device: Device) -> tuple[str, int, str]:
    """Return the sort key that puts gpu-2 before gpu-10."""
    return device.pool, len(device.name), device.name


def _device(pool: str, item: Json) -> Device:
    attributes = {
        name.rpartition("/")[2]: next(iter(value.values()), "")
        for name, value in (item.get("attributes") or {}).items()
    }
    consumes = _counters((row["counterSet"], row) for row in item.get("consumesCounters") or ())
    return Device(
        name=item["name"],
        pool=pool,
        kind=str(attributes.get("type", "")),
        gpu=_gpu_of(item["name"], attributes, consumes),
        product=str(attributes.get("productName", "")),
        memory_mib=_memory_of(item.get("capacity")) or 0,
        profile=str(attributes.get("profile", "")),
        is_healthy=not taint_rules.read_taints(item),
        consumes=consumes,
    )


def _gpu_of(name: str, attributes: Json, consumes: Counters) -> str:
    """Return the key that a GPU and its slices share: its UUID if the driver publishes it, else its name."""
    if attributes.get("type") == devices.MIG:
        return str(attributes.get("parentUUID") or next(iter(consumes), name.partition("-mig-")[0]))
    return str(attributes.get("uuid") or next(iter(consumes), name))


def _memory_of(capacity: Json | None) -> int | None:
    """Return the memory in MiB of a quantity, or of an object with one. None if it is missing or not a quantity."""
    value = (capacity or {}).get("memory")
    amount = quantities.whole_bytes(value.get("value") if isinstance(value, dict) else value)
    return None if value is None or amount is None else amount // _MIB


def _counters(rows: Iterable[tuple[str, Json]]) -> dict[str, dict[str, int]]:
    return {
        name: {
            counter: quantities.whole_bytes(amount.get("value")) or 0
            for counter, amount in (row.get("counters") or {}).items()
        }
        for name, row in rows
    }
