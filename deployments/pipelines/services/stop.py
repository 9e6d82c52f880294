"""Stopping a pipeline: at once by anyone of the team, but in a protected environment only as a change
that is approved, as for a deployment.

Its address answers 404 and its router goes; its approved steps stay, and the deployments behind it
keep serving. Starting again is a change request.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from deployments.changes.services import approvals
from deployments.changes.services.open_requests import end_open_requests
from deployments.models import Pipeline
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import desired_state
from deployments.serving.services import stopping
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Conflict

_ENDED: Final = "The pipeline was stopped. Start it, then send the request again."
_NEVER_SERVED: Final = (
    "The pipeline was stopped before it served. Request its start to try again, or its retirement to "
    "free its name."
)


def stop(*, actor: User, pipeline_id: int, reason: str = "") -> Pipeline:
    """Stop a pipeline. Stopping a stopped one changes nothing; an open request ends with it. Raises Forbidden
    where it needs approval.
    """
    pipeline = pipelines.get_visible_by_id(actor=actor, pipeline_id=pipeline_id)
    policy.require(actor, Action.STOP, pipeline)
    why = approvals.clean(reason, field="reason")
    if pipeline.is_retired or pipeline.is_retiring:
        raise Conflict(f"{pipeline} is already retired.", code="retired")
    if not pipeline.desired_generation:
        raise Conflict(
            f"{pipeline} is not serving yet. Withdraw its request instead.", code="not_serving"
        )
    if pipeline.is_stopped:
        return pipeline
    stopping.require_free(pipeline)
    with transaction.atomic():
        _lock(pipeline)
        end_open_requests(pipeline, _ENDED if pipeline.first_ready_at else _NEVER_SERVED)
        desired_state.stop(pipeline, actor=actor, reason=why)
    return pipeline


def _lock(pipeline: Pipeline) -> None:
    rows = Pipeline.objects.select_for_update(no_key=True, of=("self",))
    if not rows.filter(pk=pipeline.pk, is_stopped=False, is_retiring=False).exists():
        raise Conflict(f"{pipeline} was just stopped or retired.", code="stopped")
