"""Check images, priority classes and tolerated taints against the platform's serving policy."""

from __future__ import annotations

from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain import node_selection
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import images
from fleet.clusters.domain.serving_policy import ServingPolicy

WEIGHTS: Final = "Image of weights"
PRIORITY: Final = "Priority class"
TAINTS: Final = "Tolerated taints"
DEVICE_TAINTS: Final = "Tolerated device taints"
_OCI: Final = "oci://"
_FIX: Final = (
    "Choose an allowed one, or ask a platform admin to add it under Admin, Clusters, Serving."
)


def check_spec(spec: ServingSpec, policy: ServingPolicy, *, cluster: str) -> list[Check]:
    """Check the spec against the policy that is in force on `cluster`. One check for each image and class that
    the spec names.
    """
    image = _weights_image(spec)
    checks = [_check_image(image, policy, cluster=cluster)] if image else []
    priority_class = spec.placement.priority_class
    if priority_class:
        checks.append(_check_priority(priority_class, policy, cluster=cluster))
    if spec.placement.tolerations:
        checks.append(_check_taints(TAINTS, spec.placement.tolerations, policy, cluster=cluster))
    return [*checks, *check_devices(spec, policy, cluster=cluster)]


def check_devices(spec: ServingSpec, policy: ServingPolicy, *, cluster: str) -> list[Check]:
    """Check the tolerated taints of devices. Empty where none is tolerated."""
    text = spec.placement.claim_tolerations
    return [_check_taints(DEVICE_TAINTS, text, policy, cluster=cluster)] if text else []


def _weights_image(spec: ServingSpec) -> str:
    """Return the OCI image with the weights, which KServe runs as a sidecar. Empty without one."""
    artifact = "" if spec.llm is None else spec.llm.artifact
    return artifact.removeprefix(_OCI) if artifact.startswith(_OCI) else ""


def _check_image(image: str, policy: ServingPolicy, *, cluster: str) -> Check:
    if images.is_allowed(image, policy.allowed_images):
        return Check(WEIGHTS, ok=True, detail=f"{image} is allowed for {cluster}.")
    listed = ", ".join(policy.allowed_images) or "none"
    detail = f"{image} is not an allowed image for {cluster}. Allowed: {listed}."
    return Check(WEIGHTS, ok=False, detail=detail, fix=_FIX)


def _check_priority(name: str, policy: ServingPolicy, *, cluster: str) -> Check:
    if name in policy.priority_classes:
        return Check(PRIORITY, ok=True, detail=f"{name} is allowed for {cluster}.")
    listed = ", ".join(policy.priority_classes) or "none; leave it empty"
    detail = f"{name} is not an allowed priority class for {cluster}. Allowed: {listed}."
    return Check(PRIORITY, ok=False, detail=detail, fix=_FIX)


def _check_taints(name: str, text: str, policy: ServingPolicy, *, cluster: str) -> Check:
    """Check that the platform allows the taints: it lists them with the value, or without one for every value."""
    refused = [
        taint for taint in node_selection.split_taints(text) if taint not in policy.allowed_taints
    ]
    if not refused:
        return Check(name, ok=True, detail=f"{text} may be tolerated on {cluster}.")
    listed = ", ".join(policy.allowed_taints) or "none; leave it empty"
    detail = f"{', '.join(refused)} may not be tolerated on {cluster}. Allowed: {listed}."
    return Check(name, ok=False, detail=detail, fix=_FIX)
