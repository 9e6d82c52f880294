"""The metrics of a node that neuron-monitor reports, in the page of its Prometheus script
(neuron-monitor-prometheus.py).

Series exist while a process has the core or memory: a page without them is that of a node on which nothing runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from fleet.telemetry.domain import exposition

UTILISATION: Final = "neuroncore_utilization_ratio"
MEMORY: Final = "neuron_runtime_memory_used_bytes"
# On every page, also on that of a node on which nothing runs.
_ALWAYS: Final = "instance_info"
_ON_DEVICES: Final = "neuron_device"
_MIB: Final = 2**20


class NotNeuron(Exception):
    """The page is not neuron-monitor's."""


@dataclass(frozen=True, slots=True)
class NeuronUse:
    """The use of a node's Neuron devices. `busy_cores` is the sum of the cores' utilisation, each 0 to 1; memory is
    that of the devices.
    """

    busy_cores: float
    memory_mib: int

    def utilisation(self, cores: int) -> float | None:
        """Return the utilisation of all cores of the node, 0 to 1. None if their number is unknown."""
        return min(self.busy_cores / cores, 1.0) if cores else None


def parse_page(text: str) -> NeuronUse:
    """Raises NotNeuron."""
    try:
        rows = list(exposition.samples(text))
    except ValueError as error:
        raise NotNeuron from error
    if not any(name in (_ALWAYS, UTILISATION) for name, _, _ in rows):
        raise NotNeuron
    busy: dict[str, float] = {}
    memory = 0.0
    for name, labels, value in rows:
        if not math.isfinite(value) or value < 0:
            continue
        if name == UTILISATION:
            core = exposition.parse_labels(labels).get("neuroncore", "")
            busy[core] = max(busy.get(core, 0.0), min(value, 1.0))
        elif (
            name == MEMORY and exposition.parse_labels(labels).get("memory_location") == _ON_DEVICES
        ):
            memory += value
    return NeuronUse(sum(busy.values()), int(memory) // _MIB)
