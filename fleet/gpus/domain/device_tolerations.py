"""Devices that a claim gets although they are tainted, because it tolerates their taints."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from fleet.gpus.domain import tolerations as rules
from fleet.gpus.domain.device_taints import TaintedGpu, map_taints
from fleet.gpus.domain.devices import Devices
from fleet.gpus.domain.tolerations import Toleration


def apply_tolerations(
    offered: Devices, tainted: Iterable[TaintedGpu], tolerations: Sequence[Toleration]
) -> Devices:
    """Return the devices as a claim with these tolerations sees them. A device that the driver withdrew has no
    taint to tolerate.
    """
    free = {
        key
        for key, taints in map_taints(tainted).items()
        if not rules.list_untolerated(taints, tolerations)
    }
    return replace(
        offered,
        all=tuple(
            replace(device, is_healthy=True) if device.key in free else device
            for device in offered.all
        ),
    )
