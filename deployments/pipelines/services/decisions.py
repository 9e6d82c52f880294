"""Deciding on changes of pipelines: four eyes, by the same rules as for deployments.

With the last approval that the rules ask for the pipeline wants what was approved, in the same
transaction that has just compared the evidence; nothing lies between approval and desired state.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from deployments import audit_actions
from deployments.approvals.domain.rules import Given
from deployments.approvals.selectors import approvals
from deployments.changes.services import approvals as change_approvals
from deployments.models import Pipeline, PipelineApproval, PipelineChange
from deployments.pipelines.selectors import pipelines
from deployments.pipelines.services import checks, transitions
from deployments.states import ChangeState, PipelineChangeKind
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
    by = change_approvals.require_may_approve(actor, change)
    _require_submitted(change)
    text = change_approvals.clean(comment)
    _refresh(change)
    if evidence_hash != change.evidence_hash:
        raise Conflict(
            "The request changed after you opened it. Review it again, then decide.",
            code="evidence_changed",
        )
    change_approvals.require_helps(change, by)
    wanted = pipelines.asked_of(change)
    if wanted is not None:
        found = checks.examine(change.pipeline, wanted)
        checks.require_ok(found)
    with transaction.atomic():
        _lock(change)
        change_approvals.require_helps(change, by)
        _give(actor, change, by, text)
        if approvals.standing_of(change).is_satisfied:
            _let_run(actor, change, text)
        else:
            _note_partial(actor, change, text)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> PipelineChange:
    change = pipelines.get_change(actor=actor, change_id=change_id)
    by = change_approvals.require_may_approve(actor, change)
    _require_submitted(change)
    text = change_approvals.clean(comment)
    if not text:
        raise Invalid(
            "Give a reason, so the requester can fix it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        transitions.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=audit_actions.PIPELINE_CHANGE_REJECTED,
            reason=text,
        )
        _give(actor, change, by, text, is_approved=False)
        transitions.tell_decided(change, f"{actor.display_name} rejected it: {text}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> PipelineChange:
    """Anyone who may request may take a request back while nobody has approved it to the end."""
    change = pipelines.get_change(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    _require_submitted(change)
    text = change_approvals.clean(reason, field="reason")
    with transaction.atomic():
        transitions.move(
            actor=actor,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=audit_actions.PIPELINE_CHANGE_WITHDRAWN,
            reason=text,
        )
    return change


def expire(change: PipelineChange) -> None:
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.EXPIRED,
            action=audit_actions.PIPELINE_CHANGE_EXPIRED,
            reason="No decision was made in time. Send the request again if it is still needed.",
        )


def _require_submitted(change: PipelineChange) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise Conflict(
            f"The {change} is {change.state}; only a submitted request can be decided on.",
            code="change_state",
        )


def _refresh(change: PipelineChange) -> None:
    """Evidence and rules as they are now; what was approved before becomes void when they differ,
    and so do approvals that have lapsed.
    """
    rules = pipelines.required_now(change)
    fresh, old = pipelines.evidence_of(change, rules), change.evidence_hash
    live = approvals.live_approvals(change)
    kept = {one.pk for one in live if change_approvals.may_still(one, change)}
    gone = PipelineApproval.objects.filter(change=change, is_approved=True, void_reason="")
    with transaction.atomic():
        if fresh == old:
            _void(change, gone.exclude(pk__in=kept).update(void_reason=_LAPSED), _LAPSED)
            return
        rows = PipelineChange.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED)
        required = [one.to_json() for one in rules]
        if rows.filter(evidence_hash=old).update(evidence_hash=fresh, required=required):
            change.evidence_hash, change.required = fresh, required
            _void(
                change, gone.update(void_reason=change_approvals.CHANGED), change_approvals.CHANGED
            )


_LAPSED: Final = "It expired, or the approver no longer has permission."


def _void(change: PipelineChange, count: int, reason: str) -> None:
    change_approvals.forget_loaded(change)
    if count:
        transitions.record(
            SYSTEM,
            change,
            audit_actions.PIPELINE_APPROVAL_VOIDED,
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
            f"Someone else decided on the {change} at the same time. Reload the page.",
            code="change_state",
        )
    change_approvals.forget_loaded(change)


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
        expires_at=at + timedelta(seconds=change_approvals.VALID_SECONDS),
    )
    change_approvals.forget_loaded(change)


def _note_partial(actor: User, change: PipelineChange, comment: str) -> None:
    transitions.record(
        actor,
        change,
        audit_actions.PIPELINE_APPROVAL_GIVEN,
        after={"approvals": approvals.standing_of(change).words},
        reason=comment,
    )
    transitions.tell_wanted(change)


def _let_run(actor: User, change: PipelineChange, comment: str) -> None:
    at = clock.now()
    transitions.move(
        actor=actor,
        change=change,
        to=ChangeState.APPROVED,
        action=audit_actions.PIPELINE_CHANGE_APPROVED,
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
    transitions.tell_decided(change, f"{actor.display_name} approved it. {comment}".strip())


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
