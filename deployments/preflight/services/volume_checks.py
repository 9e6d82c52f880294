"""Check the shared volume that is to keep a deployment's models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deployments.manifests.domain.metadata import ManifestContext
from deployments.preflight.domain.checks import Check
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects

_NAME = "Model cache"
_SHARED = "ReadWriteMany"


def check_volume(context: ManifestContext, spec: ServingSpec, *, cluster_id: int) -> list[Check]:
    """Check the claim that keeps the models. Empty where none does."""
    name = spec.storage.volume_claim
    if not name:
        return []
    label = f"PersistentVolumeClaim {name} of {context.namespace}"
    try:
        claim = objects.get(
            cluster_id=cluster_id,
            api_version="v1",
            kind="PersistentVolumeClaim",
            namespace=context.namespace,
            name=name,
        )
    except ClusterError as error:
        detail = f"{label} could not be verified: {error.message}"
        return [Check(_NAME, ok=None, detail=detail, is_blocking=False)]
    if claim is None:
        fix = (
            "Create it with a StorageClass of FSx for Lustre or EFS, or set storage.model_cache "
            "to none."
        )
        detail = f"storage.volume_claim: {label} does not exist."
        return [Check(_NAME, ok=False, detail=detail, fix=fix)]
    return [_check_claim(label, claim)]


def _check_claim(label: str, claim: Mapping[str, Any]) -> Check:
    modes = (claim.get("spec") or {}).get("accessModes") or []
    phase = str((claim.get("status") or {}).get("phase") or "Pending")
    if _SHARED not in modes:
        detail = f"storage.volume_claim: {label} is {', '.join(modes)}, so pods cannot share it."
        fix = f"Use a claim with the access mode {_SHARED}, for example on FSx for Lustre or EFS."
        return Check(_NAME, ok=False, detail=detail, fix=fix)
    if phase == "Lost":
        detail = f"storage.volume_claim: {label} has lost its volume."
        return Check(_NAME, ok=False, detail=detail, fix="Use another claim.")
    if phase != "Bound":
        detail = f"{label} is not bound to a volume yet. Pods wait until it is."
        fix = "A class with WaitForFirstConsumer binds it when the first pod starts."
        return Check(_NAME, ok=None, detail=detail, fix=fix, is_blocking=False)
    detail = f"{label} is bound and shared. The first pod of a version fills it."
    return Check(_NAME, ok=True, detail=detail)
