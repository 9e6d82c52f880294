"""Parse DeviceTaintRules, and the taints of a ResourceSlice's devices (`resource.k8s.io`)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fleet.gpus.domain import devices
from fleet.gpus.domain.device_taints import DeviceTaint, TaintRule
from fleet.gpus.domain.tolerations import EFFECTS

Json = Mapping[str, Any]
# What the driver's DeviceClasses select.
_KINDS: Final = {"gpu.nvidia.com": devices.GPU, "mig.nvidia.com": devices.MIG}


def read_taints(item: Json) -> list[DeviceTaint]:
    """Read the taints of a device in a slice."""
    return [taint for row in item.get("taints") or () if (taint := _taint(row))]


def rule(item: Json) -> TaintRule | None:
    """Read a DeviceTaintRule. None if it takes no device of the driver out. Rules from before Kubernetes 1.35 may
    also select by CEL, which is not evaluated; they are left out.
    """
    name, spec = item["metadata"]["name"], item.get("spec") or {}
    selector, taint = spec.get("deviceSelector"), _taint(spec.get("taint") or {}, rule=name)
    if selector is None or taint is None or selector.get("selectors"):
        return None
    device_class = selector.get("deviceClassName") or ""
    if (selector.get("driver") or devices.DRIVER) != devices.DRIVER:
        return None
    if device_class and device_class not in _KINDS:
        return None
    return TaintRule(
        name=name,
        taint=taint,
        pool=selector.get("pool") or "",
        device=selector.get("device") or "",
        kind=_KINDS.get(device_class, ""),
    )


def rules(items: Iterable[Json]) -> list[TaintRule]:
    known = [one for item in items if (one := rule(item))]
    return sorted(known, key=lambda one: one.name)


def _taint(row: Json, *, rule: str = "") -> DeviceTaint | None:
    if row.get("effect") not in EFFECTS:
        return None
    return DeviceTaint(
        key=str(row.get("key") or ""),
        value=str(row.get("value") or ""),
        effect=str(row["effect"]),
        since=str(row.get("timeAdded") or ""),
        rule=rule,
    )
