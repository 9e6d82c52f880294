"""GPUs that pods request by ResourceClaim (DRA) instead of by the device plugin's resource."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deployments.spec.domain.scaling import KNATIVE
from portal.core.definitions import Rule

if TYPE_CHECKING:
    from deployments.spec.domain.serving_spec import ServingSpec

MIG_PREFIX: Final = "nvidia.com/mig-"
_ONLY_CLAIMS: Final = "Only claims select GPUs by it. Turn {path} on, or leave it empty."


def rules_of(spec: ServingSpec) -> Iterator[Rule]:
    placement = spec.placement
    yield from rules_of_claims(
        spec.gpu_resource,
        is_on=placement.device_claims,
        product=placement.claim_product,
        memory_gib=placement.claim_memory_gib,
        tolerations=placement.claim_tolerations,
        queue=placement.queue,
        prefix="placement.",
    )
    if not placement.device_claims:
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


def rules_of_claims(
    gpu_resource: str,
    *,
    is_on: bool,
    product: str,
    memory_gib: int,
    tolerations: str,
    queue: str,
    prefix: str = "",
) -> Iterator[Rule]:
    """Yield the rules for device claims of deployments and batch jobs. `prefix` is the path of the settings."""
    path = f"{prefix}device_claims"
    only_claims = _ONLY_CLAIMS.format(path=path)
    yield f"{prefix}claim_product", is_on or not product, only_claims
    yield f"{prefix}claim_memory_gib", is_on or not memory_gib, only_claims
    yield (
        f"{prefix}claim_tolerations",
        is_on or not tolerations,
        f"Only claims meet taints of devices. Turn {path} on, or leave it empty.",
    )
    if not is_on:
        return
    yield (
        path,
        gpu_resource == "nvidia.com/gpu" or gpu_resource.startswith(MIG_PREFIX),
        "NVIDIA's DRA driver allocates whole GPUs and MIG slices. Use nvidia.com/gpu or a slice, or turn it off.",
    )
    yield (
        f"{prefix}queue",
        not queue,
        f"Kueue counts GPUs by their resource. Leave it empty, or turn {path} off.",
    )
