"""All settings of the placement. A further one is a module in settings/, its field and its line here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from deployments.spec.domain.placement import pod_parts
from deployments.spec.domain.placement.pod_parts import PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    ClusterRules,
    DeviceClaim,
    NamedObject,
    PlacementFinding,
    PlacementSetting,
)
from deployments.spec.domain.placement.settings import (
    capacity_type,
    disruption,
    gpus,
    image_pre_pull,
    instance_types,
    kueue_queue,
    node_labels,
    node_taints,
    priority_class,
    zone_spread,
)
from deployments.spec.domain.placement.settings.capacity_type import CapacityType
from deployments.spec.domain.placement.settings.disruption import DoNotDisrupt
from deployments.spec.domain.placement.settings.gpus import (
    ClaimMemory,
    ClaimProduct,
    ClaimTolerations,
    DeviceClaims,
)
from deployments.spec.domain.placement.settings.image_pre_pull import PrePull
from deployments.spec.domain.placement.settings.instance_types import OtherInstanceTypes
from deployments.spec.domain.placement.settings.kueue_queue import QueueName
from deployments.spec.domain.placement.settings.node_labels import NodeLabelsText
from deployments.spec.domain.placement.settings.node_taints import ToleratedTaints
from deployments.spec.domain.placement.settings.priority_class import PriorityClass
from deployments.spec.domain.placement.settings.zone_spread import SpreadZones
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.gpus.domain.capacity_types import EVERY_SPOT_LABEL
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.domain.tolerations import Toleration
from portal.core.definitions import Definition, Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec


class Placement(Definition):
    """The nodes that take the pods."""

    capacity: CapacityType = "on-demand"
    other_instance_types: OtherInstanceTypes = ""
    priority_class: PriorityClass = ""
    node_labels: NodeLabelsText = ""
    tolerations: ToleratedTaints = ""
    queue: QueueName = ""
    device_claims: DeviceClaims = False
    claim_product: ClaimProduct = ""
    claim_memory_gib: ClaimMemory = 0
    claim_tolerations: ClaimTolerations = ""
    spread_zones: SpreadZones = True
    do_not_disrupt: DoNotDisrupt = False
    pre_pull: PrePull = False

    def on(self, capacity_type: str) -> Placement:
        """Return the same placement on nodes of another capacity type."""
        return self.replace(capacity=capacity_type)


# In the order in which nodes are checked and pods are written.
SETTINGS: Final[tuple[PlacementSetting, ...]] = (
    gpus.SETTING,
    capacity_type.SETTING,
    instance_types.SETTING,
    node_labels.SETTING,
    node_taints.SETTING,
    priority_class.SETTING,
    kueue_queue.SETTING,
    zone_spread.SETTING,
    disruption.SETTING,
    image_pre_pull.SETTING,
)
# The checks that refuse a setting -> the path of the field that has to change.
TITLES: Final[Mapping[str, str]] = {
    title: path for setting in SETTINGS for title, path in setting.titles.items()
}


def requirements_of(spec: ServingSpec) -> tuple[NodeRequirement, ...]:
    """Return what a node, or a node pool, must have for pods of the spec, beside the instance type and GPUs."""
    return tuple(one for setting in SETTINGS for one in setting.requirements(spec))


def tolerations_of(
    spec: ServingSpec, spot_labels: Iterable[tuple[str, str]] = EVERY_SPOT_LABEL
) -> tuple[Toleration, ...]:
    """Return the taints of nodes that pods of the spec tolerate. `spot_labels` are those of the provisioner."""
    labels = tuple(spot_labels)
    return tuple(one for setting in SETTINGS for one in setting.tolerations(spec, labels))


def claim_of(spec: ServingSpec) -> DeviceClaim | None:
    """Return the devices that each pod of the spec claims. None if it requests a resource."""
    claims = (setting.claim(spec) for setting in SETTINGS)
    return next((claim for claim in claims if claim is not None), None)


def filter_shares(shares: Sequence[GpuShare], placement: Placement) -> list[GpuShare]:
    """Return one share of each size that pods of the placement can get, at the price that they pay."""
    for setting in SETTINGS:
        shares = setting.filter_shares(shares, placement)
    return list(shares)


def explain_no_share(placement: Placement, cluster: str) -> str:
    """Say what to change where the cluster offers shares, but none to pods of the placement."""
    reasons = (setting.explain_no_share(placement, cluster) for setting in reversed(SETTINGS))
    return next(filter(None, reasons), "")


def write(spec: ServingSpec, context: PodContext) -> PodParts:
    """Return what the settings write into pods of the spec."""
    return pod_parts.join([setting.write(spec, context) for setting in SETTINGS])


def keeps_nodes(placement: Placement) -> bool:
    """Whether nodes stay while pods of the placement run, also when they are nearly empty."""
    return any(setting.keeps_nodes(placement) for setting in SETTINGS)


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    for setting in SETTINGS:
        yield from setting.rules(spec)
    yield from pod_rules_of(spec.placement, spec.gpu_resource, prefix="placement.")


def pod_rules_of(placement: Placement, gpu_resource: str, *, prefix: str = "") -> Iterator[Rule]:
    """Yield the rules of pods of any kind. `prefix` begins the path of each field."""
    for setting in SETTINGS:
        yield from setting.pod_rules(placement, gpu_resource, prefix)


def needs_of(spec: ServingSpec) -> list[tuple[str, str]]:
    """List path and option of what the cluster must have, beside the options that fields name themselves."""
    return [need for setting in SETTINGS for need in setting.needs(spec)]


def check(spec: ServingSpec, cluster: ClusterRules) -> list[PlacementFinding]:
    """List what the rules of the cluster say of the placement."""
    return [finding for setting in SETTINGS for finding in setting.check(spec, cluster)]


def named_objects(spec: ServingSpec) -> list[NamedObject]:
    """List the objects that the placement names and that the cluster must have."""
    return [named for setting in SETTINGS for named in setting.named_objects(spec)]


def describe(placement: Placement) -> str:
    """Describe the placement in one line: "spot, also on g6.xlarge, queue training"."""
    return ", ".join(filter(None, (setting.describe(placement) for setting in SETTINGS)))


def qualify(placement: Placement, nodes: str) -> str:
    """Name the nodes for approvers. `nodes` are their instance types, such as "g5.xlarge or g6.xlarge"."""
    for setting in SETTINGS:
        nodes = setting.qualify(placement, nodes)
    return nodes


def names_for_approval(spec: ServingSpec) -> tuple[str, ...]:
    """Return the names of nodes by which rules of approval match."""
    return tuple(name for setting in SETTINGS for name in setting.names_for_approval(spec))
