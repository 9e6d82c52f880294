"""Check that compiled models meet the GPU that they were built for."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from deployments.models import ModelVersion
from deployments.preflight.domain.checks import Check
from deployments.registry.domain.formats.tensorrt import COMPUTE_CAPABILITY
from deployments.sizing.domain import compute_capability

NAME: Final = "GPU of the plan"


def check_gpus(versions: Iterable[ModelVersion], gpu_names: Sequence[str]) -> list[Check]:
    """Check each plan on each GPU: models of one process share its GPU. A name is empty where the instance type
    is not known yet.
    """
    names = list(dict.fromkeys(gpu_names))
    return [c for version in versions for name in names for c in _check_gpu(version, name)]


def _check_gpu(version: ModelVersion, gpu_name: str) -> list[Check]:
    """Check a compiled model on one GPU. Empty for other formats."""
    built_for = str(version.signature.get(COMPUTE_CAPABILITY, ""))
    if not built_for:
        return []
    runs_on = compute_capability.get_compute_capability(gpu_name)
    built = (
        f"{version.label} was built for compute capability {built_for}, as its uploader declared"
    )
    if not runs_on:
        detail = f"{built}; that of {gpu_name or 'this instance type'} is unknown."
        return [Check(NAME, ok=None, detail=detail, is_blocking=False)]
    if runs_on == built_for:
        return [Check(NAME, ok=True, detail=f"{built}, which {gpu_name} has.")]
    detail = f"{built}; {gpu_name} has {runs_on}."
    if compute_capability.may_be_compatible(built_for, runs_on):
        fix = "Continue only if it was built with the hardware compatibility level Ampere+."
        return [Check(NAME, ok=False, detail=detail, fix=fix, is_blocking=False)]
    fix = f"Choose an instance type with {built_for}, or build the plan on {gpu_name}."
    return [Check(NAME, ok=False, detail=detail, fix=fix)]
