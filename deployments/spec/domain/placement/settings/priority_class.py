"""The PriorityClass of pods, by which the scheduler preempts others for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, ClassVar, Final

from deployments.spec.domain.placement.pod_parts import NOTHING, PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    FIX_BY_POLICY,
    ClusterRules,
    NamedObject,
    PlacementFinding,
    PlacementSetting,
)
from fleet.clusters.domain.node_requirements import NodeRequirement
from portal.core.definitions import setting

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_TITLE: Final = "Priority class"

PriorityClass = Annotated[
    str,
    setting(
        "Priority class",
        "Leave empty for the cluster's default.",
        pattern=r"([a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)?",
        max_length=63,
        fix="Enter a PriorityClass of the cluster, or leave it empty.",
    ),
]


class Priority(PlacementSetting):
    paths = ("placement.priority_class",)
    titles: ClassVar[Mapping[str, str]] = {_TITLE: "placement.priority_class"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        return ()

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        name = spec.placement.priority_class
        return PodParts(fields={"priorityClassName": name}) if name else NOTHING

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        name, allowed = spec.placement.priority_class, cluster.policy.priority_classes
        if not name:
            return
        if name in allowed:
            yield PlacementFinding(_TITLE, ok=True, detail=f"{name} is allowed for {cluster.name}.")
            return
        listed = ", ".join(allowed) or "none; leave it empty"
        detail = f"{name} is not an allowed priority class for {cluster.name}. Allowed: {listed}."
        yield PlacementFinding(_TITLE, ok=False, detail=detail, fix=FIX_BY_POLICY)

    def named_objects(self, spec: ServingSpec) -> Iterator[NamedObject]:
        if name := spec.placement.priority_class:
            (path,) = self.paths
            yield NamedObject(path, "scheduling.k8s.io/v1", "PriorityClass", name)


SETTING: Final = Priority()
