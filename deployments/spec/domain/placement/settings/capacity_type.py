"""The capacity type of nodes: on-demand, which may be reserved, spot, or either."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Final, Literal

from deployments.spec.domain.placement.pod_parts import (
    NOTHING,
    NodeExpression,
    PodContext,
    PodParts,
)
from deployments.spec.domain.placement.setting import PlacementSetting
from fleet.clusters.domain.node_requirements import NodeRequirement, RequiredCapacity
from fleet.clusters.domain.provisioner import NodeLabels
from fleet.gpus.domain import capacity_types, offers, tolerations
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.domain.tolerations import Toleration
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

Capacity = Literal["on-demand", "spot", "any"]
CAPACITY_CHOICES: Final = {"spot": "spot (can be reclaimed)", "any": "either"}
CapacityType = Annotated[
    Capacity,
    setting(
        "Nodes",
        "Spot is cheaper. Its nodes can be reclaimed with two minutes' notice.",
        choices=CAPACITY_CHOICES,
    ),
]


class CapacityTypes(PlacementSetting):
    paths = ("placement.capacity",)

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        requested = spec.placement.capacity
        return () if requested == capacity_types.ANY else (RequiredCapacity(requested),)

    def tolerations(
        self, spec: ServingSpec, spot_labels: Iterable[tuple[str, str]]
    ) -> Sequence[Toleration]:
        """Return the taints of spot nodes. Pods that may run on any node tolerate none of them."""
        is_spot = spec.placement.capacity == capacity_types.SPOT
        return tolerations.tolerate_spot(spot_labels) if is_spot else ()

    def filter_shares(self, shares: Sequence[GpuShare], placement: Placement) -> Sequence[GpuShare]:
        return offers.for_capacity(shares, placement.capacity)

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        groups = _groups(spec.placement.capacity, context.node_labels)
        return PodParts(alternatives=groups) if groups else NOTHING

    def qualify(self, placement: Placement, nodes: str) -> str:
        is_any = placement.capacity == capacity_types.ANY
        return f"{'spot or on-demand' if is_any else placement.capacity} {nodes}"

    def describe(self, placement: Placement) -> str:
        return placement.capacity


def _groups(capacity: str, labels: NodeLabels) -> tuple[tuple[NodeExpression, ...], ...]:
    """Return the groups of expressions of which one is met. Karpenter and node groups label their nodes differently;
    nodes without any of the labels count as on-demand.
    """
    if capacity == capacity_types.SPOT:
        return tuple(({"key": k, "operator": "In", "values": [v]},) for k, v in labels.spot)
    if capacity != capacity_types.ON_DEMAND:
        return ()
    if labels.has_other_spot_nodes:
        others = [capacity_types.ON_DEMAND, capacity_types.RESERVED]
        return (tuple({"key": k, "operator": "In", "values": others} for k, _ in labels.spot),)
    return (tuple({"key": k, "operator": "NotIn", "values": [v]} for k, v in labels.spot),)


SETTING: Final = CapacityTypes()
