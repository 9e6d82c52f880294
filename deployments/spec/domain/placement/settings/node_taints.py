"""Taints of reserved nodes that pods tolerate."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from pydantic import AfterValidator

from deployments.spec.domain.node_selection import normalized_taints, read_tolerations
from deployments.spec.domain.placement import tainted
from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    ClusterRules,
    PlacementFinding,
    PlacementSetting,
)
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.gpus.domain.tolerations import Toleration
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_TITLE: Final = "Tolerated taints"

ToleratedTaints = Annotated[
    str,
    AfterValidator(normalized_taints),
    setting(
        "Tolerated taints",
        "Taints of reserved nodes, for example reserved=batch:NoSchedule. Comma-separated. The platform "
        "lists what teams may tolerate.",
        max_length=1000,
        fix="Write them as key=value:NoSchedule or key:NoSchedule, up to 10.",
    ),
]


class NodeTaints(PlacementSetting):
    paths = ("placement.tolerations",)
    titles: ClassVar[Mapping[str, str]] = {_TITLE: "placement.tolerations"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """A toleration lets pods onto further nodes and keeps them off none."""
        return ()

    def tolerations(
        self, spec: ServingSpec, spot_labels: Iterable[tuple[str, str]]
    ) -> Sequence[Toleration]:
        return read_tolerations(spec.placement.tolerations)

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        return NOTHING

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        if text := spec.placement.tolerations:
            yield tainted.check_allowed(_TITLE, text, cluster)


SETTING: Final = NodeTaints()
