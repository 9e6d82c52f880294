"""The spread of pods across zones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from deployments.spec.domain.scaling import KNATIVE
from fleet.clusters.domain.node_requirements import NodeRequirement
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

SpreadZones = Annotated[
    bool, setting("Spread across zones", "Best effort. Never blocks scheduling.")
]


class ZoneSpread(PlacementSetting):
    paths = ("placement.spread_zones",)

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """A zone without a free GPU does not keep the others from serving."""
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        # Knative refuses the field unless its configuration was changed for it.
        if not spec.placement.spread_zones or spec.scaling.kind == KNATIVE:
            return NOTHING
        constraint = {
            "maxSkew": 1,
            "topologyKey": "topology.kubernetes.io/zone",
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": dict(context.selector)},
        }
        return PodParts(fields={"topologySpreadConstraints": [constraint]})

    def describe(self, placement: Placement) -> str:
        return "spread across zones" if placement.spread_zones else ""


SETTING: Final = ZoneSpread()
