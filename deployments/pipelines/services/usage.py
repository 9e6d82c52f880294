"""A deployment that a pipeline calls is not retired."""

from __future__ import annotations

from deployments.models import Deployment
from deployments.pipelines.selectors import pipelines
from portal.core.errors import Conflict


def require_unused(deployment: Deployment) -> None:
    """Raise Conflict when a live pipeline calls the deployment, or would once its open request is approved."""
    names = ", ".join(row.name for row in pipelines.using(deployment))
    if names:
        raise Conflict(
            f"The pipeline {names} calls {deployment}. Change or retire the pipeline first.",
            code="in_a_pipeline",
        )
