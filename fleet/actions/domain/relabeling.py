"""A node that is drained, gets a label that an agent on it acts on, and takes pods again: the steps of that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from fleet.actions.domain.drain_settings import DrainSettings
from fleet.gpus.domain.shares import is_gpu


@dataclass(frozen=True, slots=True)
class RelabelSettings:
    """The settings of an action that sets a label on a node. `value` is what the label gets: a MIG layout, or a key
    of the device plugin's configuration.
    """

    value: str
    drain: DrainSettings

    def to_json(self) -> dict[str, Any]:
        return {"value": self.value, **asdict(self.drain)}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> RelabelSettings:
        return cls(str(raw["value"]), DrainSettings.from_json(raw))


def labels_of(live: Mapping[str, Any]) -> dict[str, str]:
    return dict((live.get("metadata") or {}).get("labels") or {})


def gpu_resources_of(live: Mapping[str, Any]) -> dict[str, int]:
    """Return the allocatable GPUs of a live node by resource, without zeros."""
    allocatable = (live.get("status") or {}).get("allocatable") or {}
    return {
        name: int(amount)
        for name, amount in sorted(allocatable.items())
        if is_gpu(name) and str(amount).isdigit() and int(amount)
    }


def describe_resources(resources: Mapping[str, int]) -> str:
    """Format resources for people: "7 x nvidia.com/mig-1g.10gb". Returns "none" without any."""
    return ", ".join(f"{count} x {name}" for name, count in resources.items()) or "none"
