"""Check images against the platform's serving policy."""

from __future__ import annotations

from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain.placement.setting import FIX_BY_POLICY
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import images
from fleet.clusters.domain.serving_policy import ServingPolicy

WEIGHTS: Final = "Image of weights"
_OCI: Final = "oci://"


def check_image(spec: ServingSpec, policy: ServingPolicy, *, cluster: str) -> list[Check]:
    """Check the image that the spec names against the policy that is in force on `cluster`. Empty if it names none."""
    image = _weights_image(spec)
    return [_check_image(image, policy, cluster=cluster)] if image else []


def _weights_image(spec: ServingSpec) -> str:
    """Return the OCI image with the weights, which KServe runs as a sidecar. Empty without one."""
    artifact = "" if spec.llm is None else spec.llm.artifact
    return artifact.removeprefix(_OCI) if artifact.startswith(_OCI) else ""


def _check_image(image: str, policy: ServingPolicy, *, cluster: str) -> Check:
    if images.is_allowed(image, policy.allowed_images):
        return Check(WEIGHTS, ok=True, detail=f"{image} is allowed for {cluster}.")
    listed = ", ".join(policy.allowed_images) or "none"
    detail = f"{image} is not an allowed image for {cluster}. Allowed: {listed}."
    return Check(WEIGHTS, ok=False, detail=detail, fix=FIX_BY_POLICY)
