"""Made up for a test, which puts it into a copy of the product: hardware that no other account shares."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal

from deployments.spec.domain.applicability import needs
from deployments.spec.domain.placement.pod_parts import PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    ClusterRules,
    PlacementFinding,
    PlacementSetting,
)
from fleet.clusters.domain.node_requirements import NodeRequirement, RequiredLabels
from fleet.gpus.domain.offers import GpuShare
from portal.core.definitions import Rule, setting

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

_LABEL: Final = "karpenter.k8s.aws/instance-tenancy"
_TITLE: Final = "Tenancy"
_FACTOR: Final = Decimal("1.1")

Tenancy = Annotated[
    Literal["default", "dedicated"],
    setting(
        "Tenancy",
        "Dedicated hardware costs a tenth more.",
        choices={"default": "shared hardware", "dedicated": "dedicated hardware"},
    ),
    needs({"dedicated": "karpenter"}),
]


class HardwareTenancy(PlacementSetting):
    paths = ("placement.tenancy",)
    titles: ClassVar[Mapping[str, str]] = {_TITLE: "placement.tenancy"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        return (RequiredLabels(((_LABEL, "dedicated"),)),) if _is_dedicated(spec.placement) else ()

    def filter_shares(self, shares: Sequence[GpuShare], placement: Any) -> Sequence[GpuShare]:
        if not _is_dedicated(placement):
            return shares
        return [
            replace(share, usd_per_hour_amount=share.usd_per_hour_amount * _FACTOR)
            if share.usd_per_hour_amount is not None
            else share
            for share in shares
        ]

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        is_dedicated = _is_dedicated(spec.placement)
        return PodParts(node_selector={_LABEL: "dedicated"} if is_dedicated else {})

    def pod_rules(self, placement: Any, gpu_resource: str, prefix: str) -> Iterator[Rule]:
        is_right = not _is_dedicated(placement) or placement.capacity != "spot"
        yield f"{prefix}tenancy", is_right, "Spot nodes share hardware. Use on-demand nodes."

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        if _is_dedicated(spec.placement) and not cluster.policy.priority_classes:
            detail = f"{cluster.name} has no dedicated hardware."
            yield PlacementFinding(_TITLE, ok=False, detail=detail, fix="Use shared hardware.")

    def describe(self, placement: Any) -> str:
        return "dedicated hardware" if _is_dedicated(placement) else ""

    def qualify(self, placement: Any, nodes: str) -> str:
        return f"dedicated {nodes}" if _is_dedicated(placement) else nodes


def _is_dedicated(placement: Any) -> bool:
    return bool(placement.tenancy == "dedicated")


SETTING: Final = HardwareTenancy()
