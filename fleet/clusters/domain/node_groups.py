"""Managed node groups of EKS, as AWS describes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

_CAPACITY: Final = {"ON_DEMAND": "on-demand", "SPOT": "spot", "CAPACITY_BLOCK": "capacity-block"}
ACTIVE: Final = "ACTIVE"
UPDATING: Final = "UPDATING"


@dataclass(frozen=True, slots=True)
class GroupSize:
    """The size of a node group, in numbers of nodes."""

    min_size: int
    max_size: int
    desired_size: int

    def __str__(self) -> str:
        return f"{self.desired_size} ({self.min_size} to {self.max_size})"

    def to_json(self) -> dict[str, int]:
        return asdict(self)

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> GroupSize:
        return cls(int(raw["min_size"]), int(raw["max_size"]), int(raw["desired_size"]))


@dataclass(frozen=True, slots=True)
class NodeGroup:
    """A managed node group. `status` is AWS's: ACTIVE, UPDATING, DEGRADED, …; `issues` what AWS says is wrong with
    it.
    """

    name: str
    status: str
    size: GroupSize
    capacity_type: str
    instance_types: tuple[str, ...]
    issues: tuple[str, ...] = ()


def parse(raw: Mapping[str, Any]) -> NodeGroup:
    """Parse the `nodegroup` of a DescribeNodegroup response."""
    scaling = raw.get("scalingConfig") or {}
    issues = (raw.get("health") or {}).get("issues") or ()
    capacity = str(raw.get("capacityType", "ON_DEMAND"))
    return NodeGroup(
        name=str(raw["nodegroupName"]),
        status=str(raw.get("status", "")),
        size=GroupSize(
            int(scaling.get("minSize", 0)),
            int(scaling.get("maxSize", 0)),
            int(scaling.get("desiredSize", 0)),
        ),
        capacity_type=_CAPACITY.get(capacity, capacity.lower()),
        instance_types=tuple(map(str, raw.get("instanceTypes") or ())),
        issues=tuple(f"{item.get('code')}: {item.get('message', '')}".strip() for item in issues),
    )
