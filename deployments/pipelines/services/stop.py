"""Stopping a pipeline: anyone of the team may, at once, because stopping is always safe.

Its address answers 404 and its router goes; what was approved stays written down, and the deployments
behind it serve on. Starting again is a change request.
"""

from __future__ import annotations

from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.changes.services import approvals
from deployments.models import Pipeline, PipelineChange
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import decisions, transitions
from deployments.states import ChangeState, PipelineChangeKind
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.audit import trail
from portal.core.errors import Conflict

_ENDED: Final = "The pipeline was stopped. Send the request again once it runs."


def stop(*, actor: User, pipeline_id: int, reason: str = "") -> Pipeline:
    """Stopping what is stopped changes nothing; what waits or is being applied ends with it."""
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
    with transaction.atomic():
        _lock(pipeline)
        _end_change(pipeline)
        decisions.want(pipeline, is_stopped=True)
        trail.record(
            actor=actor,
            action=audit_actions.PIPELINE_STOPPED,
            obj=pipeline,
            label=str(pipeline),
            team_slug=pipeline.team.slug,
            before={"is_stopped": False},
            after={"is_stopped": True},
            reason=why,
        )
    return pipeline


def _lock(pipeline: Pipeline) -> None:
    rows = Pipeline.objects.select_for_update(no_key=True, of=("self",))
    if not rows.filter(pk=pipeline.pk, is_stopped=False, is_retiring=False).exists():
        raise Conflict(f"{pipeline} was just stopped or retired.", code="stopped")


def _end_change(pipeline: Pipeline) -> None:
    """A retirement that waits goes on: it wants less still."""
    change: PipelineChange | None = pipelines.open_change_of(pipeline)
    if change is None or change.kind == PipelineChangeKind.RETIRE:
        return
    is_begun = change.state == ChangeState.APPLYING
    transitions.move(
        actor=SYSTEM,
        change=change,
        to=ChangeState.FAILED if is_begun else ChangeState.WITHDRAWN,
        action=audit_actions.PIPELINE_CHANGE_FAILED
        if is_begun
        else audit_actions.PIPELINE_CHANGE_WITHDRAWN,
        reason=_ENDED,
    )
