"""Tells which provisioner starts the nodes of a cluster, and which labels a pod may require of them.

Karpenter writes what a pod requires into its NodeClaim. Its schema refuses labels of restricted domains that it does not
set itself, and a refused claim keeps nodes from starting for everyone. EKS Auto Mode restricts eks.amazonaws.com, the
domain of managed node groups' labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from fleet.gpus.domain.capacity_types import AKS_SPOT, GKE_SPOT, KARPENTER_SPOT, NODE_GROUP_SPOT
from fleet.gpus.domain.capacity_types import SPOT_LABELS as EKS_SPOT_LABELS

KARPENTER_GROUP: Final = "karpenter.sh"
AUTO_MODE_GROUP: Final = "eks.amazonaws.com"
_EC2_GROUP: Final = "karpenter.k8s.aws"
# Other clouds' Karpenter, of which only the common labels are known here.
_OTHER_GROUPS: Final = ("karpenter.azure.com", "karpenter.k8s.gcp", "karpenter.k8s.oracle")
_GKE_NODE: Final = "cloud.google.com/gke-nodepool"
_AKS_NODE: Final = "kubernetes.azure.com/agentpool"
_COMMON: Final = frozenset({"karpenter.sh/capacity-type", "karpenter.sh/nodepool"})
_HOST_NAME: Final = "kubernetes.io/hostname"
# The same in both domains: instance-gpu-name and so on.
_INSTANCE: Final = (
    *("category", "family", "generation", "size", "hypervisor", "cpu", "cpu-manufacturer"),
    *("memory", "ebs-bandwidth", "network-bandwidth", "local-nvme", "tenancy"),
    *("encryption-in-transit-supported", "cpu-sustained-clock-speed-mhz", "capability-flex"),
    *("gpu-name", "gpu-manufacturer", "gpu-count", "gpu-memory"),
    *("accelerator-name", "accelerator-manufacturer", "accelerator-count"),
)
_RESERVATION: Final = ("capacity-reservation-id", "capacity-reservation-type")


class Provisioner(StrEnum):
    """EKS stands for Karpenter with EC2NodeClasses, for node groups, and for what was not probed yet."""

    EKS = "eks"
    AUTO_MODE = "auto-mode"
    OTHER_KARPENTER = "karpenter"
    GKE = "gke"
    AKS = "aks"


_SPOT_LABELS: Final[Mapping[Provisioner, tuple[tuple[str, str], ...]]] = {
    Provisioner.EKS: EKS_SPOT_LABELS,
    Provisioner.AUTO_MODE: (KARPENTER_SPOT,),
    Provisioner.OTHER_KARPENTER: (KARPENTER_SPOT,),
    Provisioner.GKE: (GKE_SPOT,),
    Provisioner.AKS: (AKS_SPOT,),
}


@dataclass(frozen=True, slots=True)
class NodeLabels:
    """Which labels pods may require. `has_other_spot_nodes`: spot nodes exist that only a label tells which may not be
    required, so that on-demand has to be required by the provisioner's own label.
    """

    provisioner: Provisioner = Provisioner.EKS
    has_karpenter: bool = False
    has_other_spot_nodes: bool = False

    @property
    def spot(self) -> tuple[tuple[str, str], ...]:
        """The labels of spot nodes, with their values."""
        return _SPOT_LABELS[self.provisioner]

    def problem_with(self, labels: Iterable[str]) -> str:
        """Say which of the labels keeps nodes from starting; empty if none does."""
        refused = next((name for name in labels if self._is_refused(name)), "")
        if not refused:
            return ""
        who = "EKS Auto Mode" if self.provisioner is Provisioner.AUTO_MODE else "Karpenter"
        return f"{who} starts no node for a pod that requires the label {refused}."

    def _is_refused(self, name: str) -> bool:
        if not self.has_karpenter:
            return False
        domain = name.partition("/")[0]
        is_auto_mode = self.provisioner is Provisioner.AUTO_MODE
        own = AUTO_MODE_GROUP if is_auto_mode else _EC2_GROUP
        if domain == own or domain.endswith(f".{own}"):
            return name not in _labels_of(own)
        if is_auto_mode and domain == _EC2_GROUP:
            # Nothing sets it there.
            return True
        is_common = domain == KARPENTER_GROUP or domain.endswith(f".{KARPENTER_GROUP}")
        return name == _HOST_NAME or (is_common and name not in _COMMON)

    def to_json(self) -> dict[str, Any]:
        return {
            "provisioner": str(self.provisioner),
            "has_karpenter": self.has_karpenter,
            "has_other_spot_nodes": self.has_other_spot_nodes,
        }

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> NodeLabels:
        return cls(
            Provisioner(raw.get("provisioner", Provisioner.EKS)),
            bool(raw.get("has_karpenter")),
            bool(raw.get("has_other_spot_nodes")),
        )


NOT_PROBED: Final = NodeLabels()


def read(
    groups: Iterable[str],
    nodes: Iterable[Mapping[str, str]],
    node_class_groups: Iterable[str] = (),
) -> NodeLabels:
    """Tell the provisioner from the API groups of the cluster, the labels of its nodes, and its pools' node classes."""
    served, listed = {*groups, *node_class_groups}, list(nodes)
    provisioner = _provisioner(served, listed)
    key, value = NODE_GROUP_SPOT
    is_other = provisioner in (Provisioner.AUTO_MODE, Provisioner.OTHER_KARPENTER)
    has_spot_groups = any(labels.get(key, "").upper() == value for labels in listed)
    return NodeLabels(provisioner, KARPENTER_GROUP in served, is_other and has_spot_groups)


def _provisioner(groups: set[str], nodes: list[Mapping[str, str]]) -> Provisioner:
    if KARPENTER_GROUP in groups:
        if AUTO_MODE_GROUP in groups:
            return Provisioner.AUTO_MODE
        is_other = any(group in groups for group in _OTHER_GROUPS)
        return Provisioner.OTHER_KARPENTER if is_other else Provisioner.EKS
    for label, provisioner in ((_GKE_NODE, Provisioner.GKE), (_AKS_NODE, Provisioner.AKS)):
        if any(label in labels for labels in nodes):
            return provisioner
    return Provisioner.EKS


def _labels_of(domain: str) -> frozenset[str]:
    """Return the labels of its domain that it sets on nodes."""
    names = {f"{domain}/instance-{name}" for name in _INSTANCE}
    names |= {f"{domain}/{name}" for name in _RESERVATION}
    if domain == AUTO_MODE_GROUP:
        return frozenset(names | {f"{domain}/compute-type"})
    others = ("capacity-reservation-interruptible", "ec2nodeclass", "nitro-sandbox")
    names |= {f"{domain}/{name}" for name in others}
    names.add(f"{domain}/instance-encryption-in-transit-supported")
    return frozenset(names | {f"{domain}/placement-group-{name}" for name in ("id", "partition")})
