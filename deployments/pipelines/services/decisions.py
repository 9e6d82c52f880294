"""Deciding on changes of pipelines: four eyes, by the same rules as for deployments.

With the last approval that the rules ask for the pipeline wants what was approved, in the same
transaction that has just compared the evidence; nothing lies between approval and desired state.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from deployments.domain.approvals import Given
from deployments.domain.pipelines import PipelineChangeKind
from deployments.domain.states import ChangeState
from deployments.models import Pipeline, PipelineApproval, PipelineChange
from deployments.selectors import approvals, pipelines
from deployments.services import actions, approving, pipeline_checks, pipeline_states
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake

PROGRESS_SECONDS: Final = 10 * 60


def approve(
    *, actor: User, change_id: int, evidence_hash: str, comment: str = ""
) -> PipelineChange:
    """Approve what was shown. Raises Conflict when it has changed since, Forbidden for whom no rule
    names, Invalid when a check refuses now.
    """
    change = pipelines.get_change(actor=actor, change_id=change_id)
    by = approving.require_may_approve(actor, change)
    _require_submitted(change)
    text = approving.clean(comment)
    _refresh(change)
    if evidence_hash != change.evidence_hash:
        raise Conflict(
            "What you saw has changed since: look at the request again, then decide.",
            code="evidence_changed",
        )
    approving.require_helps(change, by)
    wanted = pipelines.asked_of(change)
    if wanted is not None:
        found = pipeline_checks.examine(change.pipeline, wanted)
        pipeline_checks.require_ok(found)
    with transaction.atomic():
        _lock(change)
        approving.require_helps(change, by)
        _give(actor, change, by, text)
        if approvals.standing_of(change).is_satisfied:
            _let_run(actor, change, text)
        else:
            _note_partial(actor, change, text)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> PipelineChange:
    change = pipelines.get_change(actor=actor, change_id=change_id)
    by = approving.require_may_approve(actor, change)
    _require_submitted(change)
    text = approving.clean(comment)
    if not text:
        raise Invalid(
            "Say why, so that the requester can mend it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        pipeline_states.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=actions.PIPELINE_CHANGE_REJECTED,
            reason=text,
        )
        _give(actor, change, by, text, is_approved=False)
        pipeline_states.tell_decided(change, f"{actor.display_name} rejected it: {text}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> PipelineChange:
    """Anyone who may request may take a request back while nobody has approved it to the end."""
    change = pipelines.get_change(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    _require_submitted(change)
    text = approving.clean(reason, field="reason")
    with transaction.atomic():
        pipeline_states.move(
            actor=actor,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=actions.PIPELINE_CHANGE_WITHDRAWN,
            reason=text,
        )
    return change


def expire(change: PipelineChange) -> None:
    with transaction.atomic():
        pipeline_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.EXPIRED,
            action=actions.PIPELINE_CHANGE_EXPIRED,
            reason="Nobody decided in time. Ask again if it is still wanted.",
        )


def _require_submitted(change: PipelineChange) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise Conflict(
            f"{change} is {change.state}; only a submitted request can be decided on.",
            code="change_state",
        )


def _refresh(change: PipelineChange) -> None:
    """Evidence and rules as they are now; what was approved before becomes void when they differ,
    and so do approvals that have lapsed.
    """
    rules = pipelines.required_now(change)
    fresh, old = pipelines.evidence_of(change, rules), change.evidence_hash
    live = approvals.live_approvals(change)
    kept = {one.pk for one in live if approving.may_still(one, change)}
    gone = PipelineApproval.objects.filter(change=change, is_approved=True, void_reason="")
    with transaction.atomic():
        if fresh == old:
            _void(change, gone.exclude(pk__in=kept).update(void_reason=_LAPSED), _LAPSED)
            return
        rows = PipelineChange.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED)
        required = [one.to_json() for one in rules]
        if rows.filter(evidence_hash=old).update(evidence_hash=fresh, required=required):
            change.evidence_hash, change.required = fresh, required
            _void(change, gone.update(void_reason=approving.CHANGED), approving.CHANGED)


_LAPSED: Final = "It has expired, or whoever gave it may not approve here any more."


def _void(change: PipelineChange, count: int, reason: str) -> None:
    approving.forget_loaded(change)
    if count:
        pipeline_states.record(
            SYSTEM,
            change,
            actions.PIPELINE_APPROVAL_VOIDED,
            before={"approvals": count},
            after={"approvals": 0},
            reason=reason,
        )


def _lock(change: PipelineChange) -> None:
    """The row is still what was looked at, and nobody else decides now."""
    rows = PipelineChange.objects.select_for_update(no_key=True, of=("self",))
    if not rows.filter(
        pk=change.pk, state=ChangeState.SUBMITTED, evidence_hash=change.evidence_hash
    ).exists():
        raise Conflict(
            f"Someone else decided on {change} a moment ago. Look again.", code="change_state"
        )
    approving.forget_loaded(change)


def _give(
    actor: User, change: PipelineChange, by: Given, comment: str, *, is_approved: bool = True
) -> None:
    at = clock.now()
    PipelineApproval.objects.create(
        change=change,
        user=actor,
        is_approved=is_approved,
        as_role=by.capacity,
        stands_for_id=by.stands_for_id,
        comment=comment,
        evidence_hash=change.evidence_hash,
        at=at,
        expires_at=at + timedelta(seconds=approving.VALID_SECONDS),
    )
    approving.forget_loaded(change)


def _note_partial(actor: User, change: PipelineChange, comment: str) -> None:
    pipeline_states.record(
        actor,
        change,
        actions.PIPELINE_APPROVAL_GIVEN,
        after={"approvals": approvals.standing_of(change).words},
        reason=comment,
    )
    pipeline_states.tell_wanted(change)


def _let_run(actor: User, change: PipelineChange, comment: str) -> None:
    at = clock.now()
    pipeline_states.move(
        actor=actor,
        change=change,
        to=ChangeState.APPROVED,
        action=actions.PIPELINE_CHANGE_APPROVED,
        reason=comment,
        deadline_at=at + timedelta(seconds=PROGRESS_SECONDS),
    )
    kind = PipelineChangeKind(change.kind)
    if kind == PipelineChangeKind.RETIRE:
        want(change.pipeline, is_retiring=True)
    else:
        want(change.pipeline, spec=change.spec, is_stopped=False)
    PipelineChange.objects.filter(pk=change.pk).update(
        generation=change.pipeline.desired_generation
    )
    pipeline_states.tell_decided(change, f"{actor.display_name} approved it. {comment}".strip())


def want(pipeline: Pipeline, **columns: Any) -> None:
    """The only writer of what a pipeline wants. Inside the transaction of whatever decided."""
    at = clock.now()
    Pipeline.objects.filter(pk=pipeline.pk).update(
        desired_generation=F("desired_generation") + 1,
        next_check_at=at,
        progress_deadline_at=at + timedelta(seconds=PROGRESS_SECONDS),
        **columns,
    )
    pipeline.refresh_from_db()
    wake("deployments.reconcile_pipeline", pipeline.pk)
