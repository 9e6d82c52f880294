"""Break-glass: approve past the rules with a stated reason, and have it looked at afterwards."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from django.db import transaction

from deployments import audit_actions
from deployments.approvals.domain.rules import Capacity, Given
from deployments.changes.selectors import changes as change_selectors
from deployments.changes.selectors import emergency_reviews as review_selectors
from deployments.changes.services import approvals, decisions
from deployments.models import Approval, ChangeRequest, EmergencyReview
from deployments.serving.services import timeline
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid

REVIEW_SECONDS: Final = 3 * 24 * 3600
_SHORTEST_REASON = 10
_REPLACED = "Replaced by the same person's emergency override."


def approve(*, actor: User, change_id: int, evidence_hash: str, reason: str) -> ChangeRequest:
    """Never of one's own request. It runs at once, and leaves a review that another must close; while
    one of the team is overdue there is no next one.
    """
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.EMERGENCY_OVERRIDE, change, requester_id=change.requester_id)
    decisions.require_submitted(change)
    overdue = review_selectors.overdue_words(change.team)
    if overdue:
        raise Conflict(overdue, code="review_overdue")
    why = _reason(reason)
    decisions.require_same_evidence(change, evidence_hash)
    capacity = Capacity.ADMIN if actor.is_platform_admin else Capacity.LEAD
    by = Given(person_id=actor.pk, capacity=capacity)
    with transaction.atomic():
        decisions.lock_and_check(change)
        Approval.objects.filter(change=change, user=actor, is_approved=True, void_reason="").update(
            void_reason=_REPLACED
        )
        approvals.give(actor=actor, change=change, by=by, comment=why, is_emergency=True)
        _open_review(actor, change, why)
        decisions.let_run(
            actor=actor, change=change, action=audit_actions.APPROVED_IN_EMERGENCY, comment=why
        )
        timeline.note(
            deployment=change.deployment,
            kind="emergency",
            message=f"approved with an emergency override: {why}",
            actor=actor,
            revision_number=change.revision.number if change.revision else None,
        )
    return change


def close_review(*, actor: User, review_id: int, finding: str) -> EmergencyReview:
    """By a lead or admin who neither approved it nor asked for it."""
    review = review_selectors.get_visible(actor=actor, review_id=review_id)
    may, why_not = review_selectors.may_close(actor, review)
    policy.require(actor, Action.EMERGENCY_OVERRIDE, review)
    if not may and review.closed_at is None:
        raise Forbidden(why_not, code="four_eyes")
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
        trail.record(
            actor=actor,
            action=audit_actions.EMERGENCY_REVIEWED,
            obj=review.change,
            label=str(review.change),
            team_slug=review.team.slug,
            before={"review": "open"},
            after={"review": "closed"},
            reason=text,
        )
        timeline.note(
            deployment=review.change.deployment,
            kind="emergency reviewed",
            message=f"reviewed the emergency override: {text}",
            actor=actor,
        )
    review.closed_by, review.closed_at, review.finding = actor, at, text
    return review


def _open_review(actor: User, change: ChangeRequest, why: str) -> None:
    """Open again when the first emergency approval became void before it ran."""
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
