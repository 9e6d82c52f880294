"""Deciding on change requests. Whoever approves binds to exactly the evidence that was shown."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments.domain.approvals import Capacity, Given
from deployments.domain.states import ChangeKind, ChangeState
from deployments.models import Approval, ChangeRequest
from deployments.selectors import approvals, plans
from deployments.selectors import changes as change_selectors
from deployments.services import (
    actions,
    approving,
    change_states,
    preflight,
    preflight_checks,
    rechecks,
    telling,
    timeline,
)
from deployments.services.requests import (
    request_canary,
    request_deploy,
    request_retire,
    request_roll_back,
    request_scale,
    request_start,
    submit,
)
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
    by = approving.require_may_approve(actor, change)
    require_submitted(change)
    text = approving.clean(comment)
    require_same_evidence(change, evidence_hash)
    approving.void_lapsed(change)
    approving.require_helps(change, by)
    rechecks.require_ok(change)
    with transaction.atomic():
        lock_and_check(change)
        approving.require_helps(change, by)
        approving.give(actor=actor, change=change, by=by, comment=text)
        if approvals.standing_of(change).is_satisfied:
            let_run(actor=actor, change=change, action=actions.CHANGE_APPROVED, comment=text)
            _note_approved(actor, change)
        else:
            approving.note_partial(actor=actor, change=change, comment=text)
            telling.approval_wanted(change)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> ChangeRequest:
    """By anyone who may approve, also when their approval is not the one that is missing."""
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    by = approving.require_may_approve(actor, change)
    require_submitted(change)
    text = approving.clean(comment)
    if not text:
        raise Invalid(
            "Say why, so that the requester can mend it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        change_states.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=actions.CHANGE_REJECTED,
            reason=text,
        )
        _record_rejection(actor, change, by, text)
        _close(actor, change, f"rejected: {text}")
        telling.decided(change, words=f"{actor.display_name} rejected it: {text}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> ChangeRequest:
    """Anyone who may request may also take a request back before it is applied."""
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    text = approving.clean(reason, field="reason")
    with transaction.atomic():
        change_states.move(
            actor=actor,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=actions.CHANGE_WITHDRAWN,
            reason=text,
        )
        _close(actor, change, "withdrawn")
    return change


def expire(*, change: ChangeRequest) -> None:
    with transaction.atomic():
        change_states.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.EXPIRED,
            action=actions.CHANGE_EXPIRED,
            reason="Nobody decided in time. Ask again if it is still wanted.",
        )
        _close(SYSTEM, change, "expired: nobody decided in time")


def require_submitted(change: ChangeRequest) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise Conflict(
            f"{change} is {change.state}; only a submitted request can be decided on.",
            code="change_state",
        )


def require_same_evidence(change: ChangeRequest, shown: str) -> None:
    """Outside a transaction: what had changed is kept, so that the next look shows it."""
    approving.refresh(change)
    if shown != change.evidence_hash:
        raise Conflict(
            "What you saw has changed since: look at the request again, then decide.",
            code="evidence_changed",
        )


def lock_and_check(change: ChangeRequest) -> None:
    """Inside a transaction. Two approvals at once must not both fit into the same last GPUs."""
    Team.objects.select_for_update(no_key=True).get(pk=change.team.pk)
    approving.lock(change)
    _require_still_possible(change)


def let_run(*, actor: User, change: ChangeRequest, action: AuditAction, comment: str) -> None:
    """Inside the transaction of the last approval."""
    at = clock.now()
    change_states.move(
        actor=actor,
        change=change,
        to=ChangeState.APPROVED,
        action=action,
        reason=comment,
        deadline_at=at + timedelta(seconds=change_states.APPROVED_SECONDS),
        next_check_at=at,
    )
    telling.decided(change, words=f"{actor.display_name} approved it. {comment}".strip())
    wake("deployments.apply_change", change.pk)


def _require_still_possible(change: ChangeRequest) -> None:
    """The version may have been archived and the quota used up since the request."""
    spec = plans.spec_of_change(change)
    if change.revision is None or spec is None:
        return
    served = change.revision.version
    for one in (served, *plans.packed_of(served, spec)):
        version = preflight_checks.of_version(one)
        if version.is_refusal:
            raise Invalid(f"{version.detail} {version.fix}", code="version_not_ready")
    is_in_place = change.kind == ChangeKind.SCALE
    quota = preflight.check_quota(
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
        message=f"approved {change.kind.replace('_', ' ')}",
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


def _close(actor: policy.Actor, change: ChangeRequest, words: str) -> None:
    change_states.finish(
        actor=actor, change=change, action=actions.DEPLOYMENT_RETIRED, reason=words
    )
