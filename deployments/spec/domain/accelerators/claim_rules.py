"""GPUs that pods request by ResourceClaim (DRA) instead of by the device plugin's resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deployments.spec.domain.scaling import KNATIVE
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

MIG_PREFIX: Final = "nvidia.com/mig-"
_ONLY_CLAIMS: Final = (
    "Only claims select GPUs by it. Turn placement.device_claims on, or leave it empty."
)


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    placement = spec.placement
    is_on = placement.device_claims
    yield "placement.claim_product", is_on or not placement.claim_product, _ONLY_CLAIMS
    yield "placement.claim_memory_gib", is_on or not placement.claim_memory_gib, _ONLY_CLAIMS
    if not is_on:
        return
    yield (
        "placement.device_claims",
        spec.gpu_resource == "nvidia.com/gpu" or spec.gpu_resource.startswith(MIG_PREFIX),
        "NVIDIA's DRA driver allocates whole GPUs and MIG slices. Use nvidia.com/gpu or a slice, or turn it off.",
    )
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
    yield (
        "placement.queue",
        not placement.queue,
        "Kueue counts GPUs by their resource. Leave it empty, or turn placement.device_claims off.",
    )
