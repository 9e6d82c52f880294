"""Emergency override: approve without the rules for a stated reason, which is reviewed afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.approvals.domain.approver_roles import ApproverRole
from deployments.approvals.domain.rules import Approver
from deployments.changes.selectors import changes, emergency_reviews
from deployments.changes.selectors.subjects import subject_of
from deployments.changes.services import approvals, decisions, transitions
from deployments.models import Approval, ChangeRequest, EmergencyReview
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid

REVIEW_SECONDS: Final = 3 * 24 * 3600
_SHORTEST_REASON: Final = 10
_REPLACED: Final = "Replaced by the same person's emergency override."


def approve(*, actor: User, change_id: int, evidence_hash: str, reason: str) -> ChangeRequest:
    """Approve with an emergency override. Refused for one's own request.

    The change is applied at once, and opens a review that another person must close; while one of the team is
    overdue there is no further override.
    """
    change = changes.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.EMERGENCY_OVERRIDE, change, requester_id=change.requester_id)
    step_up.require(actor)
    decisions.require_submitted(change)
    blocked = emergency_reviews.why_blocked(change.team)
    if blocked:
        raise Conflict(blocked, code="review_overdue")
    why = _reason(reason)
    reviewed = decisions.review(change, evidence_hash)
    role = ApproverRole.ADMIN if actor.is_platform_admin else ApproverRole.LEAD
    approver = Approver(person_id=actor.pk, role=role)
    with transaction.atomic():
        decisions.lock(change, reviewed)
        Approval.objects.filter(change=change, user=actor, is_approved=True, void_reason="").update(
            void_reason=_REPLACED
        )
        approvals.give(
            change=change, actor=actor, approver=approver, comment=why, is_emergency=True
        )
        _open_review(actor, change, why)
        decisions.let_run(
            actor, change, reviewed, action=audit_actions.APPROVED_IN_EMERGENCY, comment=why
        )
        message = f"approved with an emergency override: {why}"
        subject_of(change).note(change, kind="emergency", message=message, actor=actor)
    return change


def close_review(*, actor: User, review_id: int, finding: str) -> EmergencyReview:
    """Close a review. Only a lead or admin who neither requested nor approved the change can."""
    review = emergency_reviews.get_visible(actor=actor, review_id=review_id)
    may, why_not = emergency_reviews.may_close(actor, review)
    policy.require(actor, Action.EMERGENCY_OVERRIDE, review)
    if not may and review.closed_at is None:
        raise Forbidden(why_not, code="four_eyes")
    step_up.require(actor)
    text = approvals.clean(finding, field="finding")
    if not text:
        raise Invalid(
            "Enter your findings to close the review.",
            fields={"finding": "enter your findings"},
        )
    at = clock.now()
    with transaction.atomic():
        rows = EmergencyReview.objects.filter(pk=review.pk, closed_at=None)
        if rows.update(closed_by=actor, closed_at=at, finding=text) == 0:
            raise Conflict("This review is already closed.", code="review_closed")
        transitions.record(
            actor,
            review.change,
            audit_actions.EMERGENCY_REVIEWED,
            before={"review": "open"},
            after={"review": "closed"},
            reason=text,
        )
        message = f"reviewed the emergency override: {text}"
        subject_of(review.change).note(
            review.change, kind="emergency reviewed", message=message, actor=actor
        )
    review.closed_by, review.closed_at, review.finding = actor, at, text
    return review


def _open_review(actor: User, change: ChangeRequest, why: str) -> None:
    """Open a review. It is opened again if the first override became void before it ran."""
    at = clock.now()
    EmergencyReview.objects.update_or_create(
        change=change,
        defaults={
            "opened_by": actor,
            "reason": why,
            "opened_at": at,
            "due_at": at + timedelta(seconds=REVIEW_SECONDS),
            "closed_by": None,
            "closed_at": None,
            "finding": "",
        },
    )


def _reason(reason: str) -> str:
    why = approvals.clean(reason, field="reason")
    if len(why) < _SHORTEST_REASON:
        raise Invalid(
            "Give the reason for the override. The reviewer reads it first.",
            fields={"reason": f"at least {_SHORTEST_REASON} characters"},
        )
    return why
