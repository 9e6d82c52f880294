"""The protection of pods from Karpenter, which moves them to save nodes or to update them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from deployments.spec.domain.applicability import needs
from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from fleet.clusters.domain.node_requirements import NodeRequirement
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

DoNotDisrupt = Annotated[
    bool,
    setting(
        "Do not disrupt",
        "Karpenter does not move its pods to save nodes or to update them, for a model that takes long to "
        "start. Their nodes stay, also when they are nearly empty.",
    ),
    needs({True: "karpenter"}),
]


class Disruption(PlacementSetting):
    paths = ("placement.do_not_disrupt",)

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        """Write the annotation onto pods alone, not onto the objects that create them."""
        if not spec.placement.do_not_disrupt:
            return NOTHING
        return PodParts(annotations={"karpenter.sh/do-not-disrupt": "true"})

    def keeps_nodes(self, placement: Placement) -> bool:
        return placement.do_not_disrupt

    def describe(self, placement: Placement) -> str:
        return "not disrupted" if placement.do_not_disrupt else ""


SETTING: Final = Disruption()
