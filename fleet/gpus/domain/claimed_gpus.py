"""Which GPUs a pod holds by ResourceClaim: the devices that were allocated and, until those are known, what a label
of the portal's own pods says.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

CLAIMED_LABEL: Final = "slipway.dev/claimed-gpus"


@dataclass(frozen=True, slots=True)
class ClaimedDevice:
    """A device that a pod holds, in millionths of a GPU. `since` is set when the pod took it over from another."""

    pool: str
    device: str
    resource: str
    ppm: int
    since: str = ""


def format_label(resource: str, units: int) -> str:
    """Return the label of claimed GPUs, such as "nvidia.com_mig-1g.10gb.2": values of labels have no slash."""
    return f"{resource.replace('/', '_')}.{units}"


def read(labels: Mapping[str, str]) -> tuple[str, int]:
    """Read the resource and units from a label. "" and 0 if there is no readable label."""
    resource, _, units = labels.get(CLAIMED_LABEL, "").rpartition(".")
    if not units.isdecimal() or len(units) > 3 or not int(units):
        return "", 0
    return resource.replace("_", "/"), int(units)


def devices_from_json(rows: Iterable[Mapping[str, Any]]) -> list[ClaimedDevice]:
    return [ClaimedDevice(**row) for row in rows]


def merge_claims(
    before: Sequence[ClaimedDevice], known: Sequence[ClaimedDevice]
) -> list[ClaimedDevice]:
    """Keep a pod's claimed devices until the pod is gone: its claims are deleted first."""
    keys = {(one.pool, one.device) for one in before}
    return [*before, *(one for one in known if (one.pool, one.device) not in keys)]


def with_devices(
    of_plugin: tuple[str, int], otherwise: tuple[str, int], held: Sequence[ClaimedDevice]
) -> tuple[str, int]:
    """Return the resource and units of a pod: what it requests of a device plugin and what it holds by claim.
    Returns `otherwise` while no device is known.
    """
    if not held:
        return otherwise
    counts = Counter(one.resource for one in held)
    resource, units = of_plugin
    if not units:
        resource = max(held, key=lambda one: one.ppm).resource
    return resource, units + counts[resource]


def units_of_plugin(resource: str, units: int, held: Sequence[ClaimedDevice]) -> int:
    """Return the units of `with_devices` that are not claimed devices."""
    return units - sum(one.resource == resource for one in held)


def began_at(scheduled_at: datetime, held: Sequence[ClaimedDevice], plugin_units: int) -> datetime:
    """Return when a scheduled pod began to hold GPUs: later, if it took all of them over from another pod."""
    if plugin_units or not held or not all(one.since for one in held):
        return scheduled_at
    return max(scheduled_at, min(datetime.fromisoformat(one.since) for one in held))
