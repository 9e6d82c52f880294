"""Labels that a node must have to take pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import AfterValidator

from deployments.spec.domain.node_selection import normalized_labels, read_labels
from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    ClusterRules,
    PlacementFinding,
    PlacementSetting,
)
from fleet.clusters.domain.node_requirements import NodeRequirement, RequiredLabels
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_TITLE: Final = "Node labels"

NodeLabelsText = Annotated[
    str,
    AfterValidator(normalized_labels),
    setting(
        "Node labels",
        "Only nodes with all of them, for example topology.kubernetes.io/zone=us-east-1a. "
        "Comma-separated.",
        max_length=1000,
        fix="Write them as name=value, up to 10. Instance type and capacity have settings of their own.",
    ),
]


class RequestedLabels(PlacementSetting):
    paths = ("placement.node_labels",)
    titles: ClassVar[Mapping[str, str]] = {_TITLE: "placement.node_labels"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        labels = read_labels(spec.placement.node_labels)
        return (RequiredLabels.from_labels(labels),) if labels else ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        labels = read_labels(spec.placement.node_labels)
        return PodParts(node_selector=labels) if labels else NOTHING

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        """Refuse labels that keep nodes from starting. Karpenter could start none for other pods either."""
        problem = cluster.node_labels.problem_with(read_labels(spec.placement.node_labels))
        if problem:
            fix = "Remove the label, or use one that the platform sets on its node pools."
            yield PlacementFinding(_TITLE, ok=False, detail=problem, fix=fix)


SETTING: Final = RequestedLabels()
