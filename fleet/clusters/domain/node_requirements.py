"""Requirements that a pod has of its node, beside the instance type, its GPUs and the taints.

Fit and node pools ask these objects and know none of the settings that make them. A setting that requires something
else brings its own.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from fleet.clusters.domain import node_pools
from fleet.clusters.domain.node_pools import NodePool
from fleet.gpus.domain import capacity_types


class LabelledNode(Protocol):
    """A node, as it is stored."""

    @property
    def capacity_type(self) -> str: ...

    @property
    def labels(self) -> Any: ...


class NodeRequirement(ABC):
    """A requirement that a pod has of its node. Equal requirements are met by the same nodes."""

    # What is short where no node meets it: "node labels".
    subject: ClassVar[str]
    # What follows where it cannot be known whether the nodes of a pool meet it.
    doubt: ClassVar[str] = "Pods would stay pending if its nodes do not meet this."

    @abstractmethod
    def is_met_by(self, node: LabelledNode) -> bool:
        """Whether the node, as it is now, takes such a pod."""

    @abstractmethod
    def describe_unmet(self, types: str, nodes: Sequence[LabelledNode]) -> str:
        """Say that none of these nodes meets it. `types` are their instance types, such as "g5.xlarge or g6.xlarge"."""

    def is_met_by_pool(self, pool: NodePool, instance_type: str) -> bool | None:
        """Whether nodes of the type that the pool starts meet it. None: that cannot be known before they start."""
        return None

    def qualify(self, instance_type: str) -> str:
        """Name the nodes that meet it: "spot g5.xlarge"."""
        return instance_type


@dataclass(frozen=True, slots=True)
class RequiredCapacity(NodeRequirement):
    """Nodes of a capacity type: on-demand, which includes what is reserved, or spot."""

    subject: ClassVar[str] = "capacity type"
    capacity_type: str

    def is_met_by(self, node: LabelledNode) -> bool:
        return capacity_types.suits(node.capacity_type, self.capacity_type)

    def describe_unmet(self, types: str, nodes: Sequence[LabelledNode]) -> str:
        kinds = " and ".join(sorted({node.capacity_type for node in nodes}))
        are = "its 1 node is" if len(nodes) == 1 else f"its {len(nodes)} nodes are"
        return f"There is no {self.qualify(types)} node in the cluster now: {are} {kinds}."

    def is_met_by_pool(self, pool: NodePool, instance_type: str) -> bool | None:
        started = node_pools.starts(pool, instance_type)
        return any(capacity_types.suits(kind, self.capacity_type) for kind in started)

    def qualify(self, instance_type: str) -> str:
        return f"{self.capacity_type} {instance_type}"


@dataclass(frozen=True, slots=True)
class RequiredLabels(NodeRequirement):
    """Nodes that have all of these labels, as names and values."""

    subject: ClassVar[str] = "node labels"
    doubt: ClassVar[str] = "Pods would stay pending if its nodes do not get these labels."
    labels: tuple[tuple[str, str], ...]

    @classmethod
    def from_labels(cls, labels: Mapping[str, str]) -> RequiredLabels:
        return cls(tuple(labels.items()))

    def is_met_by(self, node: LabelledNode) -> bool:
        return all(node.labels.get(name) == value for name, value in self.labels)

    def describe_unmet(self, types: str, nodes: Sequence[LabelledNode]) -> str:
        do = "Its 1 node does" if len(nodes) == 1 else f"Its {len(nodes)} nodes do"
        return f"There is no {types} node with {self._named} in the cluster now. {do} not have it."

    def is_met_by_pool(self, pool: NodePool, instance_type: str) -> bool | None:
        answers = [node_pools.sets_label(pool, name, value) for name, value in self.labels]
        if False in answers:
            return False
        return None if None in answers else True

    def qualify(self, instance_type: str) -> str:
        return f"{instance_type} with {self._named}"

    @property
    def _named(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self.labels)
