"""Devices that a claim gets although they are tainted, because it tolerates their taints."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Self

from fleet.gpus.domain.device_taints import DeviceTaint, TaintedGpu, taints_of
from fleet.gpus.domain.devices import Devices


@dataclass(frozen=True, slots=True)
class DeviceToleration:
    """Of one key and effect; `value` None tolerates every value."""

    key: str
    effect: str
    value: str | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, str]) -> Self:
        """As a ResourceClaim has it."""
        return cls(manifest["key"], manifest["effect"], manifest.get("value"))

    def tolerates(self, taint: DeviceTaint) -> bool:
        return (self.key, self.effect) == (taint.key, taint.effect) and self.value in (
            None,
            taint.value,
        )


def tolerated(
    offered: Devices, tainted: Iterable[TaintedGpu], tolerations: Sequence[DeviceToleration]
) -> Devices:
    """What a claim with these tolerations sees. A device that the driver took away has no taint to tolerate."""
    free = {
        key
        for key, taints in taints_of(tainted).items()
        if all(any(one.tolerates(taint) for one in tolerations) for taint in taints)
    }
    return replace(
        offered,
        all=tuple(
            replace(device, is_healthy=True) if device.key in free else device
            for device in offered.all
        ),
    )
