"""The LocalQueue of Kueue whose quota admits pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from deployments.spec.domain.applicability import needs
from deployments.spec.domain.engines import LLM_SERVICE
from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import PlacementSetting
from deployments.spec.domain.scaling import KNATIVE
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.clusters.domain.queues import QUEUE_LABEL
from portal.core.definitions import Rule, setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

QUEUE: Final = "Queue"

QueueName = Annotated[
    str,
    setting(
        "Kueue queue",
        "A LocalQueue in the team's namespace: pods start once its quota admits them. Leave empty for none.",
        pattern=r"([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?)?",
        max_length=63,
        fix="Enter a LocalQueue of the team's namespace, or leave it empty.",
    ),
    needs({True: "kueue"}),  # any name
]


class KueueQueue(PlacementSetting):
    paths = ("placement.queue",)
    titles: ClassVar[Mapping[str, str]] = {QUEUE: "placement.queue"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """A queue delays pods. Which nodes they run on does not depend on it."""
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        """Write the label onto the workload and its pods: Kueue reads it at either, KServe copies it from either.

        Kueue starts a suspended Job when its quota admits all of its pods.
        """
        queue = spec.placement.queue
        if not queue:
            return NOTHING
        return PodParts(workload_labels={QUEUE_LABEL: queue}, suspends_job=True)

    def rules(self, spec: ServingSpec) -> Iterator[Rule]:
        is_queued = bool(spec.placement.queue)
        yield (
            "placement.queue",
            not is_queued or spec.scaling.kind != KNATIVE,
            "Knative gives up on a revision that waits. Use another autoscaler, or leave it empty.",
        )
        yield (
            "placement.queue",
            not is_queued or spec.split_nodes == 1,
            "Kueue admits the pods of KServe's server over several nodes one by one, so that some may hold GPUs "
            f"and never serve. Use {LLM_SERVICE}, or leave it empty.",
        )

    def needs(self, spec: ServingSpec) -> Iterator[tuple[str, str]]:
        if spec.placement.queue:
            yield "placement.queue", "kueue"

    def describe(self, placement: Placement) -> str:
        return f"queue {placement.queue}" if placement.queue else ""


SETTING: Final = KueueQueue()
