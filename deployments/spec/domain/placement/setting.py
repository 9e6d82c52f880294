"""A setting of the placement: which nodes it lets pods run on, and everything that follows from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final

from deployments.spec.domain.placement.pod_parts import PodContext, PodParts
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.clusters.domain.provisioner import NodeLabels
from fleet.clusters.domain.serving_policy import ServingPolicy
from fleet.gpus.domain.devices import DeviceRequest
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.domain.tolerations import Toleration
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec


# The fix of a finding that the serving policy refuses.
FIX_BY_POLICY: Final = (
    "Choose an allowed one, or ask a platform admin to add it under Admin, Clusters, Serving."
)


@dataclass(frozen=True, slots=True)
class DeviceClaim:
    """The devices that a pod claims instead of requesting a resource, and the taints of devices that it tolerates."""

    request: DeviceRequest
    tolerations: tuple[Toleration, ...] = ()


@dataclass(frozen=True, slots=True)
class ClusterRules:
    """The rules of a cluster for placements: its serving policy, and which labels its provisioner lets pods require."""

    name: str
    policy: ServingPolicy
    node_labels: NodeLabels


@dataclass(frozen=True, slots=True)
class PlacementFinding:
    """The result of a check of a setting against the rules of its cluster. `title` is among the setting's titles."""

    title: str
    ok: bool
    detail: str
    fix: str = ""


@dataclass(frozen=True, slots=True)
class NamedObject:
    """An object of the cluster that a setting names. `namespace` is empty for objects without one."""

    path: str
    api_version: str
    kind: str
    name: str
    namespace: str = ""


class PlacementSetting(ABC):
    """A setting of the placement. Whatever depends on nodes asks it instead of reading its fields.

    What a new setting has to say is abstract: left out, pods would wait for nodes that the portal called free.
    """

    # Its fields, by their path in a spec.
    paths: ClassVar[tuple[str, ...]]
    # The checks that refuse it -> the path of the field that has to change.
    titles: ClassVar[Mapping[str, str]] = {}

    @abstractmethod
    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """Return what a node, or a node pool, must have for pods of the spec. Empty if the setting excludes none."""

    @abstractmethod
    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        """Return what the setting writes into pods of the spec. NOTHING if that is nothing."""

    def tolerations(
        self, spec: ServingSpec, spot_labels: Iterable[tuple[str, str]]
    ) -> Sequence[Toleration]:
        """Return the taints of nodes that pods tolerate. `spot_labels` are those of spot nodes."""
        return ()

    def claim(self, spec: ServingSpec) -> DeviceClaim | None:
        """Return the devices that each pod claims. None if it claims none."""
        return None

    def filter_shares(self, shares: Sequence[GpuShare], placement: Placement) -> Sequence[GpuShare]:
        """Return the shares that pods of the placement can get, at the price that they pay."""
        return shares

    def explain_no_share(self, placement: Placement, cluster: str) -> str:
        """Say what to change where the cluster offers shares, but none to pods of the placement. Empty if the setting
        is not the reason.
        """
        return ""

    def keeps_nodes(self, placement: Placement) -> bool:
        """Whether nodes stay while such pods run, also when they are nearly empty."""
        return False

    def rules(self, spec: ServingSpec) -> Iterator[Rule]:
        """Yield the rules of a spec."""
        yield from ()

    def pod_rules(self, placement: Placement, gpu_resource: str, prefix: str) -> Iterator[Rule]:
        """Yield the rules of pods of any kind. `prefix` begins the path of each field: "placement." in a spec."""
        yield from ()

    def needs(self, spec: ServingSpec) -> Iterator[tuple[str, str]]:
        """Yield path and option of what the cluster must have, beside the options that fields name themselves."""
        yield from ()

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        """Yield what the rules of the cluster say of it."""
        yield from ()

    def named_objects(self, spec: ServingSpec) -> Iterator[NamedObject]:
        """Yield the objects that the cluster must have."""
        yield from ()

    def describe(self, placement: Placement) -> str:
        """Describe the setting as a part of a list: "queue training". Empty where it says nothing new."""
        return ""

    def qualify(self, placement: Placement, nodes: str) -> str:
        """Name the nodes for approvers: "spot g5.xlarge". Unchanged where the setting says nothing of them."""
        return nodes

    def names_for_approval(self, spec: ServingSpec) -> Sequence[str]:
        """Return the names of nodes by which rules of approval match."""
        return ()
