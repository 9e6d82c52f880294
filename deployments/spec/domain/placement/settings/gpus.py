"""The GPUs of a pod: requested from the device plugin by their resource, or by a ResourceClaim (DRA).

Kubernetes makes a claim for each pod from a template of the revision. Attributes and capacities are those that NVIDIA's
DRA driver publishes in ResourceSlices.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final

from pydantic import AfterValidator

from deployments.spec.domain import node_selection
from deployments.spec.domain.applicability import needs
from deployments.spec.domain.digests import digest_of
from deployments.spec.domain.node_selection import normalized_taints
from deployments.spec.domain.placement import tainted
from deployments.spec.domain.placement.pod_parts import DependentObject, PodContext, PodParts
from deployments.spec.domain.placement.setting import (
    ClusterRules,
    DeviceClaim,
    PlacementFinding,
    PlacementSetting,
)
from deployments.spec.domain.scaling import KNATIVE
from fleet.clusters.domain.node_requirements import NodeRequirement
from fleet.gpus.domain import claimed_gpus, devices, offers, tolerations
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.domain.tolerations import Toleration
from portal.core.definitions import Rule, setting

if TYPE_CHECKING:
    from deployments.spec.domain.placement.catalogue import Placement
    from deployments.spec.domain.serving_spec import ServingSpec

API_VERSION: Final = "resource.k8s.io/v1"
TEMPLATE: Final = "ResourceClaimTemplate"
DEVICE_TAINTS: Final = "Tolerated device taints"
_MIG_PREFIX: Final = "nvidia.com/mig-"
_GPU_CLASS: Final = "gpu.nvidia.com"
_MIG_CLASS: Final = "mig.nvidia.com"
# The driver's domain, for GPUs and slices alike.
_DOMAIN: Final = "gpu.nvidia.com"
# The claim of a pod, and its one request.
_CLAIM: Final = "gpus"
_LABEL: Final = "Request GPUs by ResourceClaim"
_SWITCH: Final = f"“{_LABEL}”"
_ONLY_CLAIMS: Final = "Only claims select GPUs by it. Turn {path} on, or leave it empty."

DeviceClaims = Annotated[
    bool,
    setting(
        _LABEL,
        "Where NVIDIA's DRA driver allocates the GPUs of nodes instead of the device plugin.",
    ),
    needs({True: "device-claims"}),
]
ClaimProduct = Annotated[
    str,
    setting(
        "Product of claimed GPUs",
        "Name in the DRA driver, for example NVIDIA A100-SXM4-80GB. Leave empty for any.",
        pattern=r"([A-Za-z0-9][-A-Za-z0-9 ._/+]{0,78}[A-Za-z0-9])?",
        max_length=80,
        fix="Enter the productName of a ResourceSlice, for example NVIDIA L4, or leave it empty.",
    ),
]
ClaimMemory = Annotated[
    int,
    setting(
        "Min memory of claimed GPUs",
        "Only GPUs or slices with at least this much. Leave empty for any.",
        unit="GiB",
        ge=0,
        le=1024,
        fix="Use up to 1024 GiB, or 0 for any.",
        is_empty_zero=True,
    ),
]
ClaimTolerations = Annotated[
    str,
    AfterValidator(normalized_taints),
    setting(
        "Tolerated device taints",
        "Claims may also get devices with these taints, for example example.com/slow:NoSchedule. Comma-separated. The "
        "platform lists what teams may tolerate.",
        max_length=1000,
        fix="Write them as key=value:NoSchedule or key:NoExecute, up to 10.",
    ),
]


class Gpus(PlacementSetting):
    paths = (
        "gpu_resource",
        "gpus",
        "placement.device_claims",
        "placement.claim_product",
        "placement.claim_memory_gib",
        "placement.claim_tolerations",
    )
    titles: ClassVar[Mapping[str, str]] = {DEVICE_TAINTS: "placement.claim_tolerations"}

    def requirements(self, spec: ServingSpec) -> Sequence[NodeRequirement]:
        """GPUs are counted, not required: the size of a replica has them."""
        return ()

    def tolerations(
        self, spec: ServingSpec, spot_labels: Iterable[tuple[str, str]]
    ) -> Sequence[Toleration]:
        """Return the taint of nodes that are kept for pods with GPUs."""
        return (tolerations.tolerate_accelerator(spec.gpu_resource),)

    def claim(self, spec: ServingSpec) -> DeviceClaim | None:
        placement = spec.placement
        if not placement.device_claims:
            return None
        request = devices.request_of(
            spec.gpu_resource,
            product=placement.claim_product,
            memory_gib=placement.claim_memory_gib,
        )
        return DeviceClaim(request, node_selection.read_tolerations(placement.claim_tolerations))

    def filter_shares(self, shares: Sequence[GpuShare], placement: Placement) -> Sequence[GpuShare]:
        return offers.filter_shares(shares, is_claimed=placement.device_claims)

    def explain_no_share(self, placement: Placement, cluster: str) -> str:
        if placement.device_claims:
            return f"{cluster} has no GPU that can be claimed. Turn {_SWITCH} off."
        return f"The GPUs of {cluster} are claimed. Turn {_SWITCH} on."

    def write(self, spec: ServingSpec, context: PodContext) -> PodParts:
        if not spec.placement.device_claims:
            return PodParts(amounts={spec.gpu_resource: str(spec.gpus)})
        request = _request(spec)
        # The name ends with a digest because the spec of a template cannot be changed.
        name = f"{context.workload}-{digest_of(request)[:8]}"
        template = {"spec": {"devices": {"requests": [request]}}}
        # A pod with a claim says nowhere what it holds, and fleet counts it.
        label = claimed_gpus.format_label(spec.gpu_resource, spec.gpus)
        return PodParts(
            fields={"resourceClaims": [{"name": _CLAIM, "resourceClaimTemplateName": name}]},
            claims=(_CLAIM,),
            labels={claimed_gpus.CLAIMED_LABEL: label},
            objects=(DependentObject(API_VERSION, TEMPLATE, name, template),),
        )

    def rules(self, spec: ServingSpec) -> Iterator[Rule]:
        if not spec.placement.device_claims:
            return
        yield (
            "placement.device_claims",
            spec.nodes == 1,
            "KServe sizes the pods of several nodes by their GPU resource. Use one node, or turn it off.",
        )
        yield (
            "placement.device_claims",
            spec.scaling.kind != KNATIVE,
            "Knative takes no claims in its pods. Use another autoscaler, or turn it off.",
        )

    def pod_rules(self, placement: Placement, gpu_resource: str, prefix: str) -> Iterator[Rule]:
        path, is_on = f"{prefix}device_claims", placement.device_claims
        only_claims = _ONLY_CLAIMS.format(path=path)
        yield f"{prefix}claim_product", is_on or not placement.claim_product, only_claims
        yield f"{prefix}claim_memory_gib", is_on or not placement.claim_memory_gib, only_claims
        yield (
            f"{prefix}claim_tolerations",
            is_on or not placement.claim_tolerations,
            f"Only claims meet taints of devices. Turn {path} on, or leave it empty.",
        )
        if not is_on:
            return
        yield (
            path,
            gpu_resource == "nvidia.com/gpu" or gpu_resource.startswith(_MIG_PREFIX),
            "NVIDIA's DRA driver allocates whole GPUs and MIG slices. Use nvidia.com/gpu or a slice, or turn it off.",
        )
        yield (
            f"{prefix}queue",
            not placement.queue,
            f"Kueue counts GPUs by their resource. Leave it empty, or turn {path} off.",
        )

    def needs(self, spec: ServingSpec) -> Iterator[tuple[str, str]]:
        if spec.placement.device_claims and spec.gpu_resource.startswith(_MIG_PREFIX):
            yield "placement.device_claims", "mig-claims"
        if spec.placement.claim_tolerations:
            yield "placement.claim_tolerations", "device-tolerations"

    def check(self, spec: ServingSpec, cluster: ClusterRules) -> Iterator[PlacementFinding]:
        if text := spec.placement.claim_tolerations:
            yield tainted.check_allowed(DEVICE_TAINTS, text, cluster)


def _request(spec: ServingSpec) -> dict[str, Any]:
    is_slice = spec.gpu_resource.startswith(_MIG_PREFIX)
    exactly: dict[str, Any] = {
        "deviceClassName": _MIG_CLASS if is_slice else _GPU_CLASS,
        "allocationMode": "ExactCount",
        "count": spec.gpus,
    }
    if selectors := _selectors(spec):
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    if tolerated := node_selection.read_tolerations(spec.placement.claim_tolerations):
        exactly["tolerations"] = [one.manifest() for one in tolerated]
    return {"name": _CLAIM, "exactly": exactly}


def _selectors(spec: ServingSpec) -> list[str]:
    """Return the selectors in CEL. Patterns of the settings admit no quotes."""
    placement, made = spec.placement, []
    attributes = f"device.attributes['{_DOMAIN}']"
    if spec.gpu_resource.startswith(_MIG_PREFIX):
        made.append(f"{attributes}.profile == '{spec.gpu_resource.removeprefix(_MIG_PREFIX)}'")
    if placement.claim_product:
        made.append(f"{attributes}.productName == '{placement.claim_product}'")
    if placement.claim_memory_gib:
        least = f"quantity('{placement.claim_memory_gib}Gi')"
        made.append(f"device.capacity['{_DOMAIN}'].memory.compareTo({least}) >= 0")
    return made


SETTING: Final = Gpus()
