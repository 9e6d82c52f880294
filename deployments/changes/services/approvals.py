"""Count approvals on a change: who may give one, what it binds to, and when it is void."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Min

from deployments import audit_actions
from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.domain.rules import Approver
from deployments.approvals.selectors import approvals
from deployments.changes.selectors import evidence
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import Rendered, subject_of
from deployments.changes.services import transitions
from deployments.models import Approval, ChangeRequest
from deployments.states import ChangeState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.core import clock
from portal.core.errors import AlreadyDone, Forbidden, Invalid

LONGEST_COMMENT: Final = 2000
# How long an approval waits for the others that the rules require.
VALID_SECONDS: Final = 7 * 24 * 3600
CHANGED: Final = "The request changed after this approval, so the approval is void. Decide again."
_EXPIRED: Final = "The other approvals did not arrive in time, so this one expired."
_NO_LONGER: Final = "The approver no longer has permission to approve this."
# What an approver must still be allowed to do while their approval counts.
_LASTING: Final = {
    ApproverRole.LEAD: Action.EMERGENCY_OVERRIDE,
    ApproverRole.ADMIN: Action.EMERGENCY_OVERRIDE,
    ApproverRole.DELEGATE: Action.REQUEST_CHANGE,
    ApproverRole.NAMED: Action.VIEW,
}


def require_may_approve(actor: User, change: ChangeRequest) -> Approver:
    """Return the role in which the actor approves. Raises NotFound for outsiders, Forbidden
    otherwise.
    """
    policy.require(actor, Action.VIEW, change)
    # Also of a member whom a rule names, and who needs no role.
    policy.require_entitled(actor, Action.APPROVE)
    approver = approvals.ApproverContext(actor).approver_for(change)
    if approver is None or approver.role != ApproverRole.NAMED:
        policy.require(actor, Action.APPROVE, change, requester_id=change.requester_id)
    # Also of a member whom a rule names.
    policy.require_another(actor, Action.APPROVE, change.team, change.requester_id)
    if approver is None:
        raise Forbidden("No approval rule lets you approve this change.", code="role_required")
    return approver


def require_counts(change: ChangeRequest, approver: Approver) -> None:
    """Refuse an approval that would not count, so that it is not mistaken for one."""
    if any(row.user_id == approver.person_id for row in approvals.live_approvals(change)):
        description = approvals.status_of(change).description
        message = f"You have already approved this: {description}."
        raise AlreadyDone(message, code="approved_already")
    if not approvals.is_counting(change, approver):
        change.refresh_from_db(fields=["state"])
        if change.state != ChangeState.SUBMITTED:
            raise transitions.decided_by_another(change)
        description = approvals.status_of(change).description
        raise Forbidden(f"Your approval does not count here: {description}.", code="role_required")


def refresh(change: ChangeRequest) -> ReviewedChange:
    """Bring evidence and rules up to date; approvals of what was before become void.

    Only while the change waits for a decision, and outside a transaction.
    """
    reviewed, old = evidence.review(change), change.evidence_hash
    if reviewed.digest != old:
        with transaction.atomic():
            rows = ChangeRequest.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED)
            if rows.filter(evidence_hash=old).update(**reviewed.columns):
                _set(change, reviewed)
                void(change, CHANGED)
    return reviewed


def bind(change: ChangeRequest, rendered: Rendered | None = None) -> dict[str, Any]:
    """Bind a request to its present evidence, and return the columns that were set.

    Call it before the first save, and when the request goes back to its approvers.
    """
    reviewed = evidence.review(change, rendered)
    _set(change, reviewed)
    return reviewed.columns


def _set(change: ChangeRequest, reviewed: ReviewedChange) -> None:
    for name, value in reviewed.columns.items():
        setattr(change, name, value)


def lock(change: ChangeRequest) -> None:
    """Lock the row and check that it is unchanged. Call inside a transaction."""
    rows = ChangeRequest.objects.select_for_update(no_key=True, of=("self",))
    same = rows.filter(
        pk=change.pk, state=ChangeState.SUBMITTED, evidence_hash=change.evidence_hash
    )
    if not same.exists():
        raise transitions.decided_by_another(change)
    forget_loaded(change)


def forget_loaded(change: ChangeRequest) -> None:
    """Drop prefetched approvals, so that they are read again."""
    getattr(change, "_prefetched_objects_cache", {}).pop("approvals", None)


def give(
    *,
    change: ChangeRequest,
    actor: User,
    approver: Approver,
    comment: str,
    is_approved: bool = True,
    is_emergency: bool = False,
) -> None:
    """Store a decision. Call inside its transaction."""
    at = clock.now()
    Approval.objects.create(
        change=change,
        user=actor,
        is_approved=is_approved,
        as_role=approver.role,
        stands_for_id=approver.stands_for_id,
        is_emergency=is_emergency,
        comment=comment,
        evidence_hash=change.evidence_hash,
        at=at,
        expires_at=at + timedelta(seconds=VALID_SECONDS) if is_approved else None,
    )
    forget_loaded(change)


def note_partial(*, actor: User, change: ChangeRequest, comment: str) -> None:
    """Record an approval that is not the last one. Call inside its transaction."""
    description = approvals.status_of(change).description
    transitions.record(
        actor,
        change,
        audit_actions.APPROVAL_GIVEN,
        after={"state": change.state, "approvals": description},
        reason=comment,
    )
    subject_of(change).note(
        change, kind="approval", message=f"approved; {description}", actor=actor
    )
    # The sweep comes when the request or the first approval ends, whichever is sooner.
    ChangeRequest.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED).update(
        next_check_at=next_deadline(change.pk, change.deadline_at)
    )


def next_deadline(change_id: int, deadline_at: datetime | None) -> datetime | None:
    rows = Approval.objects.filter(change=change_id, is_approved=True, void_reason="")
    first = rows.aggregate(first=Min("expires_at"))["first"]
    return min((at for at in (deadline_at, first) if at is not None), default=None)


def is_approved_now(change: ChangeRequest) -> bool:
    """Whether the evidence is the same and enough approvals are valid, evaluated again before anything runs."""
    if evidence.digest(change) != change.evidence_hash:
        return False
    forget_loaded(change)
    live = [
        row for row in approvals.live_approvals(change) if row.evidence_hash == change.evidence_hash
    ]
    if any(row.is_emergency and is_still_allowed(row, change) for row in live):
        return True
    are_allowed = all(is_still_allowed(row, change) for row in live)
    return approvals.status_of(change).is_satisfied and are_allowed


def void(change: ChangeRequest, reason: str) -> None:
    """Void every live approval. Inside a transaction."""
    _void(change, _live_rows(change), reason)


def void_lapsed(change: ChangeRequest) -> None:
    """Void expired approvals, and those of people who may not approve any more."""
    at, rows = clock.now(), _live_rows(change)
    late = [row for row in rows if row.expires_at is not None and row.expires_at <= at]
    lost = [row for row in rows if row not in late and not is_still_allowed(row, change)]
    with transaction.atomic():
        _void(change, late, _EXPIRED)
        _void(change, lost, _NO_LONGER)


def _live_rows(change: ChangeRequest) -> list[Approval]:
    rows = Approval.objects.filter(change=change, is_approved=True, void_reason="")
    return list(rows.select_related("user"))


def _void(change: ChangeRequest, rows: Sequence[Approval], reason: str) -> None:
    if not rows:
        return
    live = Approval.objects.filter(pk__in=[row.pk for row in rows], void_reason="")
    voided = live.update(void_reason=reason)
    forget_loaded(change)
    if voided:
        transitions.record(
            SYSTEM,
            change,
            audit_actions.APPROVAL_VOIDED,
            before={"approvals": voided},
            after={"approvals": 0},
            reason=reason,
        )
        subject_of(change).note(change, kind="approval void", message=reason, actor=SYSTEM)


def is_still_allowed(approval: Approval, change: ChangeRequest) -> bool:
    """Whether the approver may still approve.

    A lead's or admin's approval lasts as long as they are one, a delegate's while they are more than a viewer, and
    that of people whom a rule names while they are in the team.
    """
    return policy.is_allowed(approval.user, _LASTING[ApproverRole(approval.as_role)], change)


def clean(comment: str, *, field: str = "comment") -> str:
    """Strip the text. Raises Invalid if it is too long."""
    text = comment.strip()
    if len(text) > LONGEST_COMMENT:
        raise Invalid(
            f"The {field} is longer than {LONGEST_COMMENT} characters.", fields={field: "too long"}
        )
    return text
