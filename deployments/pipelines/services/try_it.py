"""Try a pipeline: one request through its address, as any client's."""

from __future__ import annotations

from deployments.models import Deployment, Pipeline
from deployments.pipelines.selectors import pipelines
from deployments.serving.domain import inference_call
from deployments.serving.services import try_it
from deployments.serving.services.try_it import TrialResponse
from portal.accounts import policy
from portal.accounts.policy import Action, Actor
from portal.core.errors import Conflict


def send(*, actor: Actor, pipeline_id: int, body: str) -> TrialResponse:
    """Send a request to the pipeline. Raises Invalid for a body that is not a JSON object or too large,
    Conflict unless the pipeline serves, Unavailable without a response.
    """
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.VIEW, pipeline)
    if pipeline.is_retired or pipeline.is_stopped or not pipeline.desired_generation:
        raise Conflict(f"{pipeline} is not serving.", code="not_serving")
    return try_it.post(pipelines.url_of(pipeline), body, version_id=None)


def call_of(pipeline: Pipeline) -> inference_call.Call | None:
    """Return the call that the first deployment takes which a request reaches. None when it serves nothing."""
    spec = pipelines.spec_of(pipeline)
    if spec is None:
        return None
    row = (
        Deployment.objects.filter(
            team=pipeline.team_id,
            cluster=pipeline.cluster_id,
            name=spec.first_deployment(),
            is_retired=False,
        )
        .select_related("stable_revision__version__model")
        .first()
    )
    if row is None or row.stable_revision is None:
        return None
    return try_it.call_of(row.stable_revision)
