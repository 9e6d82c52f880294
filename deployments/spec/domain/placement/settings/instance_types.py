"""The instance types of the nodes that take pods: a first one, and others in order of preference."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import AfterValidator

from deployments.spec.domain.node_selection import (
    INSTANCE_TYPE,
    INSTANCE_TYPE_LABEL,
    MOST_OTHER_TYPES,
    normalized_types,
)
from deployments.spec.domain.placement.pod_parts import PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from fleet.clusters.domain.node_requirements import NodeRequirement
from portal.core.definitions import Rule, setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

FIRST_TYPE: Final = "Instance type"
OTHER_TYPES: Final = "Other instance types"
OTHER_MEMORY: Final = "GPU memory of other types"
# Kubernetes allows 1 to 100 for a preference.
_WEIGHT: Final = 100
_STEP: Final = 100 // MOST_OTHER_TYPES

InstanceType = Annotated[
    str,
    setting(
        "Instance type",
        "Nodes of this type run the pods.",
        pattern=INSTANCE_TYPE,
        max_length=40,
        fix="Enter an instance type of the cluster, for example g5.xlarge.",
    ),
]
OtherInstanceTypes = Annotated[
    str,
    AfterValidator(normalized_types),
    setting(
        "Other instance types",
        "Fallbacks, in order of preference, for example g6.xlarge, g5.2xlarge. "
        "Budget and approvals count the most expensive. Comma-separated.",
        max_length=250,
        fix=f"Write them as names of instance types, each once, up to {MOST_OTHER_TYPES}.",
    ),
]


class InstanceTypes(PlacementSetting):
    paths = ("instance_type", "placement.other_instance_types")
    titles: ClassVar[Mapping[str, str]] = {
        FIRST_TYPE: "instance_type",
        OTHER_TYPES: "placement.other_instance_types",
        OTHER_MEMORY: "placement.other_instance_types",
    }

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """Instance types are no requirement of their own: all that is offered and priced is by type."""
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        """Write a node selector, which requires all its labels. Several instance types are in the affinity."""
        types = spec.instance_types
        if len(types) == 1:
            return PodParts(node_selector={INSTANCE_TYPE_LABEL: spec.instance_type})
        return PodParts(required=(_in(types),), preferred=_preferences(types))

    def rules(self, spec: ServingSpec) -> Iterator[Rule]:
        yield (
            "placement.other_instance_types",
            spec.instance_type not in spec.instance_types[1:],
            f"{spec.instance_type} is already the instance type. Remove it here.",
        )
        yield (
            "placement.other_instance_types",
            spec.nodes == 1 or len(spec.instance_types) == 1,
            "The pods of one replica over several nodes run on one instance type. Leave it empty.",
        )

    def describe(self, placement: Placement) -> str:
        others = placement.other_instance_types
        return f"also on {others}" if others else ""

    def names_for_approval(self, spec: ServingSpec) -> Sequence[str]:
        return spec.instance_types


def _preferences(types: Sequence[str]) -> tuple[dict[str, Any], ...]:
    """Prefer each type but the last, the first one the heaviest. Karpenter requires the heaviest at first, and
    drops one after the other until a node can start: down the list.
    """
    return tuple(
        {"weight": _WEIGHT - _STEP * index, "preference": {"matchExpressions": [_in((name,))]}}
        for index, name in enumerate(types[:-1])
    )


def _in(types: Sequence[str]) -> dict[str, Any]:
    return {"key": INSTANCE_TYPE_LABEL, "operator": "In", "values": list(types)}


SETTING: Final = InstanceTypes()
