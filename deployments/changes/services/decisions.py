"""Decide on change requests. An approval binds to exactly the evidence that was shown."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments import audit_actions
from deployments.approvals.selectors import approvals
from deployments.changes.selectors import changes, evidence
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import subject_of
from deployments.changes.services import approvals as change_approvals
from deployments.changes.services import notifications, recheck, transitions
from deployments.models import ChangeRequest
from deployments.states import ChangeState
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import Team, User
from portal.accounts.policy import SYSTEM, Action
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake


def approve(*, actor: User, change_id: int, evidence_hash: str, comment: str = "") -> ChangeRequest:
    """Approve what was shown. With the last approval that the rules require it is applied at once.

    Raises Conflict when the state or the evidence has changed since it was shown, Forbidden when
    this person's approval counts for no rule, Invalid or QuotaExceeded when a check that passed at
    the request refuses now.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    approver = change_approvals.require_may_approve(actor, change)
    step_up.require(actor)
    require_submitted(change)
    text = change_approvals.clean(comment)
    reviewed = review(change, evidence_hash)
    change_approvals.void_lapsed(change)
    change_approvals.require_counts(change, approver)
    recheck.require_ok(change, reviewed)
    with transaction.atomic():
        lock(change, reviewed)
        change_approvals.require_counts(change, approver)
        change_approvals.give(change=change, actor=actor, approver=approver, comment=text)
        if approvals.status_of(change).is_satisfied:
            let_run(actor, change, reviewed, action=audit_actions.CHANGE_APPROVED, comment=text)
            message = f"{change.noun} approved"
            subject_of(change).note(change, kind="approved", message=message, actor=actor)
        else:
            change_approvals.note_partial(actor=actor, change=change, comment=text)
            notifications.approval_requested(change)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> ChangeRequest:
    """Reject a request. Anyone who may approve can, also when their approval is not the missing
    one.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    approver = change_approvals.require_may_approve(actor, change)
    require_submitted(change)
    text = change_approvals.clean(comment)
    if not text:
        raise Invalid(
            "Give a reason, so the requester can fix it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        # First, so that the snapshot of the decision holds it.
        change_approvals.give(
            change=change, actor=actor, approver=approver, comment=text, is_approved=False
        )
        transitions.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=audit_actions.CHANGE_REJECTED,
            reason=text,
        )
        transitions.close(actor=actor, change=change, reason=f"rejected: {text}")
        notifications.notify_decision(change, message=f"{actor.display_name} rejected it: {text}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> ChangeRequest:
    """Take a request back before it is applied. Anyone who may request may also withdraw."""
    change = changes.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    text = change_approvals.clean(reason, field="reason")
    if change.state == ChangeState.APPLYING:
        rollout = ", or abort its rollout" if change.deployment_id else ""
        raise Conflict(
            f"The {change} is already being applied. Stop {change.subject}{rollout}.",
            code="change_state",
        )
    with transaction.atomic():
        transitions.move(
            actor=actor,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=audit_actions.CHANGE_WITHDRAWN,
            reason=text,
        )
        transitions.close(actor=actor, change=change, reason="withdrawn")
    return change


def expire(*, change: ChangeRequest) -> None:
    with transaction.atomic():
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.EXPIRED,
            action=audit_actions.CHANGE_EXPIRED,
            reason="No decision was made in time. Send the request again if it is still needed.",
        )
        transitions.close(actor=SYSTEM, change=change, reason="expired: no decision in time")


def require_submitted(change: ChangeRequest) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise transitions.already_decided(change)


def review(change: ChangeRequest, shown: str) -> ReviewedChange:
    """Evaluate the request once for a decision; raises Conflict when it is not what was `shown`.

    Outside a transaction: what changed is stored, so that the page shows it next time.
    """
    reviewed = change_approvals.refresh(change)
    if shown != change.evidence_hash:
        raise Conflict(
            "The request changed after you opened it. Review it again, then decide.",
            code="evidence_changed",
        )
    return reviewed


def lock(change: ChangeRequest, reviewed: ReviewedChange) -> None:
    """Lock team and request, so that two approvals at once do not both fit into the same last GPUs. Call inside a
    transaction.
    """
    Team.objects.select_for_update(no_key=True).get(pk=change.team_id)
    change_approvals.lock(change)
    reviewed.subject.require_still_possible(change, reviewed.rendered)


def run_as_approved_before(actor: User, change: ChangeRequest, *, reason: str) -> None:
    """Run a roll back to a revision that was approved before. Call inside the transaction of the request."""
    step_up.require(actor)
    let_run(
        actor,
        change,
        evidence.review(change),
        action=audit_actions.CHANGE_APPROVED,
        comment=reason,
    )
    message = f"rolled back without a new approval: {reason}"
    subject_of(change).note(change, kind="approved", message=message, actor=actor)


def let_run(
    actor: User,
    change: ChangeRequest,
    reviewed: ReviewedChange,
    *,
    action: AuditAction,
    comment: str,
) -> None:
    """Approve the request and queue its application. Call inside the transaction of the last approval."""
    at = clock.now()
    transitions.move(
        actor=actor,
        change=change,
        to=ChangeState.APPROVED,
        action=action,
        reason=comment,
        deadline_at=at + timedelta(seconds=transitions.APPROVED_SECONDS),
        next_check_at=at,
        reviewed=reviewed,
    )
    notifications.notify_decision(
        change, message=f"{actor.display_name} approved it. {comment}".strip()
    )
    wake("deployments.apply_change", change.pk)
