"""The reasons for which deployments of a pipeline do not answer now."""

from __future__ import annotations

from deployments.models import Deployment, Pipeline
from deployments.pipelines.domain.pipeline_spec import PipelineSpec
from deployments.states import DeploymentState


def failing(pipeline: Pipeline, spec: PipelineSpec) -> list[str]:
    rows = Deployment.objects.filter(
        team=pipeline.team_id,
        cluster=pipeline.cluster_id,
        is_retired=False,
        name__in=spec.deployments,
    ).order_by("name")
    reasons = []
    for row in rows:
        if row.is_stopped or row.is_retiring:
            state = "is stopped" if row.is_stopped else "is being retired"
            reasons.append(f"{row.name} {state}, so its steps fail.")
        elif row.state == DeploymentState.DEGRADED:
            reasons.append(f"{row.name} is degraded: {row.state_reason}".rstrip(".: ") + ".")
    return reasons
