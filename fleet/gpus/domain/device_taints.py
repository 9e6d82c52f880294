"""GPUs that a taint takes out of what can be claimed: the driver's own in its ResourceSlice, or one of a
DeviceTaintRule. Which of them a claim tolerates: device_tolerations.py.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from fleet.gpus.domain import devices, shares
from fleet.gpus.domain.devices import Device, Devices
from fleet.gpus.domain.shares import GPU_PPM, NodeGpus

_DESCRIBED: Final = 3


@dataclass(frozen=True, slots=True)
class DeviceTaint:
    """A taint of a device. `since` as Kubernetes writes it, or empty. `rule` names the DeviceTaintRule; empty: it
    is the driver's.
    """

    key: str
    value: str
    effect: str
    since: str = ""
    rule: str = ""

    def __str__(self) -> str:
        """Format the taint in kubectl notation, with who set it."""
        value = f"={self.value}" if self.value else ""
        source = f"DeviceTaintRule {self.rule}" if self.rule else "the driver"
        since = f" since {self.since}" if self.since else ""
        return f"{self.key}{value}:{self.effect} by {source}{since}"


@dataclass(frozen=True, slots=True)
class PartOfGpu:
    """A device of a GPU, in millionths of it."""

    pool: str
    device: str
    ppm: int
    taints: tuple[DeviceTaint, ...] = ()


@dataclass(frozen=True, slots=True)
class TaintedGpu:
    """A GPU of which some device has a taint, with all of its devices; or one that its driver took away for now."""

    gpu: str
    parts: tuple[PartOfGpu, ...] = ()
    is_withdrawn: bool = False

    @property
    def reason(self) -> str:
        """The taints of the GPU's devices, such as "gpu-0: xid=79:NoExecute by the driver"."""
        if self.is_withdrawn:
            return "the driver took its ResourceSlices away"
        tainted = [part for part in self.parts if part.taints]
        named = [f"{p.device}: {', '.join(map(str, p.taints))}" for p in tainted[:_DESCRIBED]]
        more = len(tainted) - len(named)
        return "; ".join([*named, f"{more} more"] if more else named)

    def blocked_ppm(self, held: Collection[tuple[str, str]]) -> int:
        """Return the share of the GPU that is neither held nor can be claimed, in millionths of a GPU."""
        taken = sum(part.ppm for part in self.parts if (part.pool, part.device) in held)
        free = max(0, GPU_PPM - taken)
        offered = [
            part.ppm
            for part in self.parts
            if not self.is_withdrawn and not part.taints and (part.pool, part.device) not in held
        ]
        # A whole GPU is none of its slices: it can be claimed while all of it is free.
        slices = sum(ppm for ppm in offered if ppm < GPU_PPM)
        usable = GPU_PPM if GPU_PPM in offered and not taken else slices
        return free - min(free, usable)


@dataclass(frozen=True, slots=True)
class Blocked:
    """A GPU, or what is left of one, that no new claim gets."""

    ppm: int
    reason: str


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A DeviceTaintRule: empty selects any. `kind` is that of a DeviceClass of the driver."""

    name: str
    taint: DeviceTaint
    pool: str = ""
    device: str = ""
    kind: str = ""

    def matches(self, device: Device) -> bool:
        return (
            self.pool in ("", device.pool)
            and self.device in ("", device.name)
            and self.kind in ("", device.kind)
        )


Taints = Mapping[tuple[str, str], Sequence[DeviceTaint]]


@dataclass(slots=True)
class _OfGpu:
    parts: list[PartOfGpu] = field(default_factory=list)
    is_tainted: bool = False


def list_tainted_gpus(offered: Devices, taints: Taints, gpus: NodeGpus) -> list[TaintedGpu]:
    by_gpu: dict[str, _OfGpu] = defaultdict(_OfGpu)
    for device in offered.all:
        own = tuple(taints.get(device.key, ()))
        ppm = shares.device_ppm(device, gpus) if device.kind == devices.MIG else GPU_PPM
        one = by_gpu[device.gpu]
        one.parts.append(PartOfGpu(device.pool, device.name, ppm, own))
        one.is_tainted |= bool(own)
    return [TaintedGpu(gpu, tuple(one.parts)) for gpu, one in by_gpu.items() if one.is_tainted]


def withdrawn_gpus(offered: Devices, gpus: NodeGpus) -> list[TaintedGpu]:
    """Return all GPUs of a node whose driver offers nothing now."""
    gone = DeviceTaint("", "", "")
    all_of = list_tainted_gpus(offered, {device.key: [gone] for device in offered.all}, gpus)
    return [
        TaintedGpu(
            one.gpu, tuple(replace(part, taints=()) for part in one.parts), is_withdrawn=True
        )
        for one in all_of
    ]


def list_blocked(
    tainted: Iterable[TaintedGpu], held: Collection[tuple[str, str]], *, at_most: int
) -> list[Blocked]:
    """Return the blocked GPUs, at most `at_most`: those of the node that a device plugin does not offer, whatever
    their taints are.
    """
    blocked_parts = [Blocked(one.blocked_ppm(held), one.reason) for one in tainted]
    return [one for one in blocked_parts if one.ppm][: max(0, at_most)]


def to_json(tainted: Iterable[TaintedGpu]) -> list[dict[str, Any]]:
    return [asdict(one) for one in tainted]


def from_json(stored: Iterable[Mapping[str, Any]]) -> list[TaintedGpu]:
    return [
        TaintedGpu(
            row["gpu"],
            tuple(
                PartOfGpu(**{**part, "taints": tuple(DeviceTaint(**t) for t in part["taints"])})
                for part in row["parts"]
            ),
            row["is_withdrawn"],
        )
        for row in stored
    ]


def rules_from_json(stored: Iterable[Mapping[str, Any]]) -> list[TaintRule]:
    return [TaintRule(**{**row, "taint": DeviceTaint(**row["taint"])}) for row in stored]


def map_taints(tainted: Iterable[TaintedGpu]) -> dict[tuple[str, str], tuple[DeviceTaint, ...]]:
    """Return the taints by pool and name of the device."""
    return {(p.pool, p.device): p.taints for one in tainted for p in one.parts if p.taints}
