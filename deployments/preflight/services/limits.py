"""Checks of what the platform lets teams name: images and priority classes."""

from __future__ import annotations

from typing import Final

from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.clusters.domain import images
from fleet.clusters.domain.serving_policy import ServingPolicy

TRANSFORMER: Final = "Transformer image"
EXPLAINER: Final = "Explainer image"
WEIGHTS: Final = "Image of weights"
PRIORITY: Final = "Priority class"
_OCI: Final = "oci://"
_FIX: Final = (
    "Choose an allowed one, or ask a platform admin to add it under Admin, Clusters, Serving."
)


def of_spec(spec: ServingSpec, policy: ServingPolicy, *, where: str) -> list[Check]:
    """`policy` is the one in force on the cluster `where`. Only what the spec names is checked."""
    named = {
        TRANSFORMER: spec.components.transformer_image,
        EXPLAINER: spec.components.explainer_image,
        WEIGHTS: _image_of_weights(spec),
    }
    checks = [_of_image(name, image, policy, where=where) for name, image in named.items() if image]
    wanted = spec.placement.priority_class
    return [*checks, _of_priority(wanted, policy, where=where)] if wanted else checks


def _image_of_weights(spec: ServingSpec) -> str:
    """KServe runs a container of it beside the server."""
    artifact = "" if spec.llm is None else spec.llm.artifact
    return artifact.removeprefix(_OCI) if artifact.startswith(_OCI) else ""


def _of_image(name: str, image: str, policy: ServingPolicy, *, where: str) -> Check:
    if images.is_allowed(image, policy.allowed_images):
        return Check(name, ok=True, detail=f"{image} is allowed for {where}.")
    listed = ", ".join(policy.allowed_images) or "none"
    words = f"{image} is not an allowed image for {where}. Allowed: {listed}."
    return Check(name, ok=False, detail=words, fix=_FIX)


def _of_priority(wanted: str, policy: ServingPolicy, *, where: str) -> Check:
    if wanted in policy.priority_classes:
        return Check(PRIORITY, ok=True, detail=f"{wanted} is allowed for {where}.")
    listed = ", ".join(policy.priority_classes) or "none; leave it empty"
    words = f"{wanted} is not an allowed priority class for {where}. Allowed: {listed}."
    return Check(PRIORITY, ok=False, detail=words, fix=_FIX)
