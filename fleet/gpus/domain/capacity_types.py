"""Capacity types of nodes: on-demand, spot, reserved or capacity block. Each has its own price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
# A placement may also request any; on-demand then means any type but spot.
ANY: Final = "any"
_KARPENTER: Final = "karpenter.sh/capacity-type"
_NODE_GROUP: Final = "eks.amazonaws.com/capacityType"


def of_labels(labels: Mapping[str, str]) -> str:
    """Karpenter and EKS Auto Mode set on-demand, spot or reserved; managed node groups set ON_DEMAND,
    SPOT or CAPACITY_BLOCK. A node with neither label counts as on-demand.
    """
    value = labels.get(_KARPENTER) or labels.get(_NODE_GROUP) or ON_DEMAND
    return value.lower().replace("_", "-")[:20]


def suits(capacity_type: str, requested: str) -> bool:
    """Whether a pod that requests this capacity may run on a node of the type."""
    if requested == ANY:
        return True
    return (capacity_type == SPOT) == (requested == SPOT)


def order(capacity_type: str) -> tuple[bool, bool, str]:
    """Sort key: on-demand first, spot last. The first one bounds the cost of a pod that runs on any."""
    return (capacity_type != ON_DEMAND, capacity_type == SPOT, capacity_type)
