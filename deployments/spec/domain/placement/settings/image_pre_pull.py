"""The pull of images onto all nodes that may run pods, before a pod needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Final

from deployments.spec.domain.applicability import limit_to_engines, needs
from deployments.spec.domain.engines import ENGINES, LLM_SERVICE
from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from fleet.clusters.domain.node_requirements import NodeRequirement
from portal.core.definitions import Rule, setting

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

# A preset of KServe sets the image of the others.
_NAMED_IMAGES: Final = tuple(engine for engine in ENGINES if engine != LLM_SERVICE)

PrePull = Annotated[
    bool,
    setting("Pre-pull images", "A DaemonSet keeps the images on all nodes of the instance type."),
    limit_to_engines(_NAMED_IMAGES, "KServe's preset names the image. Turn it off."),
    needs({True: "daemon-sets"}),
]


class ImagePrePull(PlacementSetting):
    paths = ("placement.pre_pull",)

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        return PodParts(pulls_images=True) if spec.placement.pre_pull else NOTHING

    def rules(self, spec: ServingSpec) -> Iterator[Rule]:
        yield (
            "placement.pre_pull",
            not spec.placement.pre_pull or spec.split_nodes == 1,
            "KServe's runtime for several nodes names the image. Turn it off.",
        )


SETTING: Final = ImagePrePull()
