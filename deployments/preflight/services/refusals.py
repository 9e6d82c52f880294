"""Refuse a request whose checks refuse it."""

from __future__ import annotations

from collections.abc import Iterable

from deployments.preflight.domain.checks import Check, Preflight
from deployments.preflight.services import (
    capacity_checks,
    compiled_models,
    environment_checks,
    image_weights,
    limits,
    multi_model_checks,
    revision_checks,
    scaling_checks,
    team_address_checks,
)
from deployments.spec.domain.placement import catalogue
from portal.core.errors import Invalid, QuotaExceeded

# The form field of each check.
_FIELDS = {
    "Name": "name",
    "Version": "version_id",
    "Artifact": "version_id",
    "Signature": "version_id",
    environment_checks.ENVIRONMENT: "environment",
    environment_checks.PROMOTION: "version_id",
    environment_checks.GOLDEN: "version_id",
    "Engine": "engine",
    revision_checks.TRITON_SETTINGS: "batching",
    multi_model_checks.NAME: "additional_models",
    "GPU memory": "gpu_resource",
    "Context": "llm.max_model_len",
    "Tensor parallel": "llm.tensor_parallel",
    limits.WEIGHTS: "llm.artifact",
    image_weights.NAME: "llm.artifact",
    "Quota": "max_replicas",
    scaling_checks.NAME: "scaling",
    team_address_checks.NAME: "network.team_address",
    scaling_checks.KNATIVE_PODS: "scaling",
    capacity_checks.CAPACITY: "instance_type",
    compiled_models.NAME: "instance_type",
    "Server dry-run": "name",
    **catalogue.TITLES,
}


def require_ok(preflight: Preflight) -> None:
    require_all(preflight.checks)


def require_all(checks: Iterable[Check]) -> None:
    """Raise Invalid or QuotaExceeded with every refusal and its fix."""
    if not (refusals := [check for check in checks if check.is_refusal]):
        return
    fields = {
        _FIELDS[check.name]: f"{check.detail} {check.fix}".strip()
        for check in reversed(refusals)
        if check.name in _FIELDS
    }
    message = " ".join(f"{check.name}: {check.detail} {check.fix}".strip() for check in refusals)
    if refusals[0].name == "Quota":
        raise QuotaExceeded(message, fields=fields)
    code = "version_not_ready" if refusals[0].name == "Version" else Invalid.code
    raise Invalid(message, fields=fields, code=code)
