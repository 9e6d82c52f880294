"""GPUs by ResourceClaim: a template of the revision, from which Kubernetes makes a claim for each of its pods.

Attributes and capacities are those that NVIDIA's DRA driver publishes in ResourceSlices.
"""

from __future__ import annotations

from typing import Any, Final

from deployments.manifests.domain.metadata import (
    CLAIM,
    Manifest,
    ManifestContext,
    ServedRevision,
    digest_of,
    metadata,
)
from deployments.spec.domain import node_selection
from deployments.spec.domain.accelerators.claim_rules import MIG_PREFIX
from deployments.spec.domain.kubernetes_names import workload_name
from deployments.spec.domain.serving_spec import ServingSpec

API_VERSION: Final = "resource.k8s.io/v1"
KIND: Final = "ResourceClaimTemplate"
GPU_CLASS: Final = "gpu.nvidia.com"
MIG_CLASS: Final = "mig.nvidia.com"
# The driver's domain, for GPUs and slices alike.
_DOMAIN: Final = "gpu.nvidia.com"


def template(context: ManifestContext, served: ServedRevision) -> Manifest:
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": metadata(context, name_of(context, served), served),
        "spec": spec_of(served.spec),
    }


def spec_of(spec: ServingSpec) -> dict[str, Any]:
    return {"spec": {"devices": {"requests": [_request(spec)]}}}


def pod_fields(context: ManifestContext, served: ServedRevision) -> dict[str, Any]:
    """Return the pod's reference to the claim template. Empty where the device plugin's resource is requested."""
    if not served.spec.placement.device_claims:
        return {}
    name = name_of(context, served)
    return {"resourceClaims": [{"name": CLAIM, "resourceClaimTemplateName": name}]}


def name_of(context: ManifestContext, served: ServedRevision) -> str:
    """Return the template's name, which ends with a digest because the spec of a template cannot be changed."""
    workload = workload_name(context.deployment, served.number)
    return f"{workload}-{digest_of(_request(served.spec))[:8]}"


def _request(spec: ServingSpec) -> dict[str, Any]:
    is_slice = spec.gpu_resource.startswith(MIG_PREFIX)
    exactly: dict[str, Any] = {
        "deviceClassName": MIG_CLASS if is_slice else GPU_CLASS,
        "allocationMode": "ExactCount",
        "count": spec.gpus,
    }
    if selectors := _selectors(spec):
        exactly["selectors"] = [{"cel": {"expression": expression}} for expression in selectors]
    if spec.placement.claim_tolerations:
        exactly["tolerations"] = node_selection.tolerations(spec.placement.claim_tolerations)
    return {"name": CLAIM, "exactly": exactly}


def _selectors(spec: ServingSpec) -> list[str]:
    """Return the selectors in CEL. Patterns of the settings admit no quotes."""
    placement, made = spec.placement, []
    attributes = f"device.attributes['{_DOMAIN}']"
    if spec.gpu_resource.startswith(MIG_PREFIX):
        made.append(f"{attributes}.profile == '{spec.gpu_resource.removeprefix(MIG_PREFIX)}'")
    if placement.claim_product:
        made.append(f"{attributes}.productName == '{placement.claim_product}'")
    if placement.claim_memory_gib:
        least = f"quantity('{placement.claim_memory_gib}Gi')"
        made.append(f"device.capacity['{_DOMAIN}'].memory.compareTo({least}) >= 0")
    return made
