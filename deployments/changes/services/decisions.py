"""Deciding on change requests. Whoever approves binds to exactly the evidence that was shown."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments import audit_actions
from deployments.approvals.domain.rules import Capacity, Given
from deployments.approvals.selectors import approvals
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.selectors import descriptions, evidence
from deployments.changes.services import approvals as change_approvals
from deployments.changes.services import notifications, recheck, transitions
from deployments.changes.services.requests import (
    request_canary,
    request_deploy,
    request_retire,
    request_roll_back,
    request_scale,
    request_start,
    request_stop,
    submit,
)
from deployments.manifests.selectors import rendering
from deployments.models import Approval, ChangeRequest
from deployments.preflight.services import quota_checks, revision_checks
from deployments.serving.services import timeline
from deployments.states import ChangeKind, ChangeState
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import SYSTEM, Action
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict, Invalid, QuotaExceeded
from portal.core.wakeups import wake

__all__ = [
    "approve",
    "expire",
    "reject",
    "request_canary",
    "request_deploy",
    "request_retire",
    "request_roll_back",
    "request_scale",
    "request_start",
    "request_stop",
    "submit",
    "withdraw",
]


def approve(*, actor: User, change_id: int, evidence_hash: str, comment: str = "") -> ChangeRequest:
    """Approve what was shown. With the last approval that the rules ask for it is applied at once.

    Raises Conflict when the state or the evidence has changed since it was shown, Forbidden when
    this person's approval counts for no rule, Invalid or QuotaExceeded when a check that passed at
    the request refuses now.
    """
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    by = change_approvals.require_may_approve(actor, change)
    require_submitted(change)
    text = change_approvals.clean(comment)
    require_same_evidence(change, evidence_hash)
    change_approvals.void_lapsed(change)
    change_approvals.require_helps(change, by)
    recheck.require_ok(change)
    with transaction.atomic():
        lock_and_check(change)
        change_approvals.require_helps(change, by)
        change_approvals.give(actor=actor, change=change, by=by, comment=text)
        if approvals.standing_of(change).is_satisfied:
            let_run(actor=actor, change=change, action=audit_actions.CHANGE_APPROVED, comment=text)
            _note_approved(actor, change)
        else:
            change_approvals.note_partial(actor=actor, change=change, comment=text)
            notifications.approval_wanted(change)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> ChangeRequest:
    """By anyone who may approve, also when their approval is not the one that is missing."""
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    by = change_approvals.require_may_approve(actor, change)
    require_submitted(change)
    text = change_approvals.clean(comment)
    if not text:
        raise Invalid(
            "Give a reason, so the requester can fix it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        # First, so that what is kept of the decision holds it.
        _record_rejection(actor, change, by, text)
        transitions.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=audit_actions.CHANGE_REJECTED,
            reason=text,
        )
        _close(actor, change, f"rejected: {text}")
        notifications.decided(change, words=f"{actor.display_name} rejected it: {text}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> ChangeRequest:
    """Anyone who may request may also take a request back before it is applied."""
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    text = change_approvals.clean(reason, field="reason")
    if change.state == ChangeState.APPLYING:
        raise Conflict(
            f"The {change} is already being applied. Stop {change.deployment}, or abort its rollout.",
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
        _close(actor, change, "withdrawn")
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
        _close(SYSTEM, change, "expired: no decision in time")


def require_submitted(change: ChangeRequest) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise Conflict(
            f"The {change} is {change.state}; only a submitted request can be decided on.",
            code="change_state",
        )


def require_same_evidence(change: ChangeRequest, shown: str) -> None:
    """Outside a transaction: what had changed is kept, so that the next look shows it."""
    change_approvals.refresh(change)
    if shown != change.evidence_hash:
        raise Conflict(
            "The request changed after you opened it. Review it again, then decide.",
            code="evidence_changed",
        )


def lock_and_check(change: ChangeRequest) -> None:
    """Inside a transaction. Two approvals at once must not both fit into the same last GPUs."""
    Team.objects.select_for_update(no_key=True).get(pk=change.team.pk)
    change_approvals.lock(change)
    _require_still_possible(change)


def let_run(*, actor: User, change: ChangeRequest, action: AuditAction, comment: str) -> None:
    """Inside the transaction of the last approval."""
    at = clock.now()
    transitions.move(
        actor=actor,
        change=change,
        to=ChangeState.APPROVED,
        action=action,
        reason=comment,
        deadline_at=at + timedelta(seconds=transitions.APPROVED_SECONDS),
        next_check_at=at,
    )
    notifications.decided(change, words=f"{actor.display_name} approved it. {comment}".strip())
    wake("deployments.apply_change", change.pk)


def _require_still_possible(change: ChangeRequest) -> None:
    """The version may have been archived and the quota used up since the request."""
    spec = evidence.spec_of_change(change)
    if change.revision is None or spec is None:
        return
    served = change.revision.version
    for one in (served, *rendering.additional_versions(served, spec)):
        version = revision_checks.check_version(one)
        if version.is_refusal:
            raise Invalid(f"{version.detail} {version.fix}", code="version_not_ready")
    is_in_place = change.kind == ChangeKind.SCALE
    quota = quota_checks.check_quota(
        change.team,
        spec,
        without_change_id=change.pk,
        without_deployment_id=change.deployment_id if is_in_place else None,
    )
    if quota.is_refusal:
        raise QuotaExceeded(f"{quota.detail} {quota.fix}")


def _note_approved(actor: User, change: ChangeRequest) -> None:
    timeline.note(
        deployment=change.deployment,
        kind="approved",
        message=f"approved {descriptions.of_kind(change.kind)}",
        actor=actor,
        revision_number=change.revision.number if change.revision else None,
    )


def _record_rejection(actor: User, change: ChangeRequest, by: Given, comment: str) -> None:
    Approval.objects.create(
        change=change,
        user=actor,
        is_approved=False,
        as_role=by.capacity,
        stands_for_id=by.stands_for_id if by.capacity == Capacity.DELEGATE else None,
        comment=comment,
        evidence_hash=change.evidence_hash,
        at=clock.now(),
    )
    change_approvals.forget_loaded(change)


def _close(actor: policy.Actor, change: ChangeRequest, words: str) -> None:
    transitions.finish(
        actor=actor, change=change, action=audit_actions.DEPLOYMENT_RETIRED, reason=words
    )
