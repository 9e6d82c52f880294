"""A deployment that a pipeline calls is not retired, nor closed where no pipeline could call it."""

from __future__ import annotations

from deployments.access.domain.kind import AccessKind
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


def require_callable(deployment: Deployment, access: AccessKind) -> None:
    """Raise Conflict when a live pipeline calls the deployment and could not with that access."""
    names = ", ".join(row.name for row in pipelines.using(deployment))
    why_not = pipelines.why_closed(deployment, access) if names else ""
    if why_not:
        raise Conflict(
            f"The pipeline {names} calls {deployment} and no longer could. {why_not} Change or retire the "
            "pipeline first.",
            code="in_a_pipeline",
        )
