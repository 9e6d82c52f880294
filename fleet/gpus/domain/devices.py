"""The devices of NVIDIA's DRA driver: whole GPUs and MIG slices that pods claim, and how many are free."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

DRIVER: Final = "gpu.nvidia.com"
GPU: Final = "gpu"
MIG: Final = "mig"

# Of a driver's counter set, by counter. MIG slices that overlap take from the same counters.
Counters = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Device:
    """A device of a DRA driver. `gpu` names the physical GPU that it is, or is a slice of. `kind` is gpu or mig,
    `profile` of a slice.
    """

    name: str
    pool: str
    kind: str
    gpu: str
    product: str = ""
    memory_mib: int = 0
    profile: str = ""
    # False: the driver tainted it, as a GPU with an error.
    is_healthy: bool = True
    consumes: Counters = field(default_factory=dict)

    @property
    def key(self) -> tuple[str, str]:
        return self.pool, self.name


@dataclass(frozen=True, slots=True)
class DeviceRequest:
    """The devices that a claim selects. Empty and 0 select any."""

    kind: str
    profile: str = ""
    product: str = ""
    memory_gib: int = 0

    def matches(self, device: Device) -> bool:
        return (
            device.kind == self.kind
            and device.profile == self.profile
            and (not self.product or device.product == self.product)
            and device.memory_mib >= self.memory_gib * 1024
        )

    def __str__(self) -> str:
        what = f"MIG slice {self.profile}" if self.kind == MIG else "GPU"
        product = f" of {self.product}" if self.product else ""
        return what + product + (f" with {self.memory_gib} GiB" if self.memory_gib else "")


@dataclass(frozen=True, slots=True)
class Devices:
    """The devices of one node, and what the driver has of each counter."""

    all: tuple[Device, ...] = ()
    counters: Counters = field(default_factory=dict)

    @property
    def gpu_count(self) -> int:
        return len({device.gpu for device in self.all})

    @property
    def product(self) -> str:
        return next((device.product for device in self.all if device.product), "")

    @property
    def memory_mib(self) -> int:
        """The memory of a whole GPU in MiB. 0 if all are partitioned."""
        return max((device.memory_mib for device in self.all if device.kind == GPU), default=0)

    def units(self, request: DeviceRequest, taken: Collection[tuple[str, str]] = ()) -> int:
        """Count the matching devices that can be allocated, one after the other, beside the taken ones."""
        left = _left(self.counters, (device for device in self.all if device.key in taken))
        count = 0
        for device in self.all:
            is_free = device.is_healthy and device.key not in taken and request.matches(device)
            if is_free and _has_room(left, device.consumes):
                _take(left, device.consumes)
                count += 1
        return count

    def most(self, request: DeviceRequest) -> int:
        """Count as `units` does, including tainted devices: they exist, and a claim may tolerate their taints."""
        every = (replace(device, is_healthy=True) for device in self.all)
        return replace(self, all=tuple(every)).units(request)

    def has_free(self, device: Device, taken: Collection[tuple[str, str]]) -> bool:
        """Whether a claim can be given this device now."""
        if device.key in taken or not device.is_healthy:
            return False
        left = _left(self.counters, (one for one in self.all if one.key in taken))
        return _has_room(left, device.consumes)

    def requests(self) -> list[DeviceRequest]:
        """Return a request for each kind of device, once."""
        return list(dict.fromkeys(DeviceRequest(d.kind, d.profile) for d in self.all))

    def withdrawn(self) -> Devices:
        """Return the devices as withdrawn: a driver that restarts takes its slices away. The GPUs exist and are
        held; none can be claimed.
        """
        return Devices(tuple(replace(device, is_healthy=False) for device in self.all))

    def to_json(self) -> dict[str, Any]:
        if not self.all:
            return {}
        return {"devices": [asdict(device) for device in self.all], "counters": self.counters}


NONE: Final = Devices()


def from_json(stored: Mapping[str, Any]) -> Devices:
    rows = stored.get("devices") or ()
    return Devices(tuple(Device(**row) for row in rows), stored.get("counters") or {})


def resource_of(device: Device) -> str:
    """Return the resource by which the product counts it, as if a device plugin offered it."""
    return f"nvidia.com/mig-{device.profile}" if device.kind == MIG else "nvidia.com/gpu"


def request_of(resource: str, *, product: str = "", memory_gib: int = 0) -> DeviceRequest:
    """Return what a pod claims instead of this resource."""
    profile = resource.removeprefix("nvidia.com/mig-")
    if profile != resource:
        return DeviceRequest(MIG, profile, product, memory_gib)
    return DeviceRequest(GPU, "", product, memory_gib)


def _left(counters: Counters, taken: Iterable[Device]) -> dict[str, dict[str, int]]:
    left = {name: dict(amounts) for name, amounts in counters.items()}
    for device in taken:
        _take(left, device.consumes)
    return left


def _has_room(left: Counters, consumes: Counters) -> bool:
    return all(
        left.get(name, {}).get(counter, 0) >= amount
        for name, amounts in consumes.items()
        for counter, amount in amounts.items()
    )


def _take(left: dict[str, dict[str, int]], consumes: Counters) -> None:
    for name, amounts in consumes.items():
        for counter, amount in amounts.items():
            own = left.setdefault(name, defaultdict(int))
            own[counter] = own.get(counter, 0) - amount
