"""Capacity types of nodes: how their GPUs are paid for. Each has its own price."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

ON_DEMAND: Final = "on-demand"
SPOT: Final = "spot"
# Paid for in advance: an on-demand reservation or a capacity block.
RESERVED: Final = "reserved"
# Hardware of one's own. Its price is one of a GPU, whatever the number of GPUs in a node.
OWN: Final = "own"
# In the order of a form, each with what it means there.
LABELS: Final[Mapping[str, str]] = {
    ON_DEMAND: "on-demand",
    SPOT: "spot",
    RESERVED: "reserved instance",
    "savings-plan": "savings plan",
    "capacity-block": "capacity block",
    OWN: "own hardware",
}
# A placement may also request any; on-demand then means any type but spot.
ANY: Final = "any"
# What AWS cannot label: that a reservation or a savings plan pays for the node, or that it is one's own.
LABEL: Final = "slipway.dev/capacity-type"
_KARPENTER: Final = "karpenter.sh/capacity-type"
_NODE_GROUP: Final = "eks.amazonaws.com/capacityType"
KARPENTER_SPOT: Final = (_KARPENTER, "spot")
NODE_GROUP_SPOT: Final = (_NODE_GROUP, "SPOT")
GKE_SPOT: Final = ("cloud.google.com/gke-spot", "true")
AKS_SPOT: Final = ("kubernetes.azure.com/scalesetpriority", "spot")
# Labels of spot nodes; taints of them have the same names and values.
SPOT_LABELS: Final = (KARPENTER_SPOT, NODE_GROUP_SPOT)
EVERY_SPOT_LABEL: Final = (*SPOT_LABELS, GKE_SPOT, AKS_SPOT)


def read_labels(labels: Mapping[str, str]) -> str:
    """Karpenter and EKS Auto Mode set on-demand, spot or reserved; managed node groups set ON_DEMAND,
    SPOT or CAPACITY_BLOCK. Slipway's own label comes first. A node with none counts as on-demand.
    """
    names = (LABEL, _KARPENTER, _NODE_GROUP)
    is_spot = any(labels.get(name) == value for name, value in (GKE_SPOT, AKS_SPOT))
    default = SPOT if is_spot else ON_DEMAND
    value = next((labels[name] for name in names if labels.get(name)), default)
    return value.lower().replace("_", "-")[:20]


def suits(capacity_type: str, requested: str) -> bool:
    """Whether a pod that requests this capacity may run on a node of the type."""
    if requested == ANY:
        return True
    return (capacity_type == SPOT) == (requested == SPOT)


def order(capacity_type: str) -> tuple[bool, bool, str]:
    """Sort key: on-demand first, spot last. The first one bounds the cost of a pod that runs on any."""
    return (capacity_type != ON_DEMAND, capacity_type == SPOT, capacity_type)
