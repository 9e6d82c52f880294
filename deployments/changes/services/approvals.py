"""Counting approvals on a change: who may give one, what it binds to, and when it is void."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Min

from deployments import audit_actions
from deployments.approvals.domain.rules import Capacity, Given
from deployments.approvals.selectors import approvals
from deployments.approvals.selectors.approvals import Decidable
from deployments.changes.selectors import evidence
from deployments.models import Approval, ChangeRequest, GivenApproval
from deployments.serving.services import timeline
from deployments.states import ChangeState
from portal.accounts import policy
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.audit import trail
from portal.core import clock
from portal.core.errors import Conflict, Forbidden, Invalid

LONGEST_COMMENT: Final = 2000
# How long an approval waits for the others that the rules ask for.
VALID_SECONDS: Final = 7 * 24 * 3600
CHANGED: Final = "The request changed after this approval, so the approval is void. Decide again."
_EXPIRED: Final = "The other approvals did not arrive in time, so this one expired."
_NO_LONGER: Final = "The approver no longer has permission to approve this."


def require_may_approve(actor: User, change: Decidable) -> Given:
    """As what they approve. NotFound for strangers, Forbidden with the rule for the rest."""
    policy.require(actor, Action.VIEW, change)
    by = approvals.Desk(actor).capacity(change)
    if by is None or by.capacity != Capacity.NAMED:
        policy.require(actor, Action.APPROVE, change, requester_id=change.requester_id)
    if by is None or actor.pk == change.requester_id:
        raise Forbidden(
            f"You requested this change, so someone else in {change.team.slug} must approve it "
            "(four eyes).",
            code="four_eyes",
        )
    return by


def require_helps(change: Decidable, by: Given) -> None:
    """An approval that counts for nothing is refused, so that nobody believes it did."""
    if any(one.user_id == by.person_id for one in approvals.live_approvals(change)):
        words = approvals.standing_of(change).words
        raise Conflict(f"You have already approved this: {words}.", code="approved_already")
    if not approvals.whose_turn(change, by):
        words = approvals.standing_of(change).words
        raise Forbidden(f"Your approval does not count here: {words}.", code="role_required")


def refresh(change: ChangeRequest) -> bool:
    """Bring evidence and rules up to date; approvals of what was before become void.

    Only while the change waits for a decision. Returns whether anything had changed.
    """
    old = change.evidence_hash
    fresh = _as_of_now(change)
    if fresh["evidence_hash"] == old:
        return False
    with transaction.atomic():
        rows = ChangeRequest.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED)
        if rows.filter(evidence_hash=old).update(**fresh):
            _set(change, fresh)
            void(change, CHANGED)
    return True


def bind(change: ChangeRequest) -> dict[str, Any]:
    """Before it is saved for the first time, and when it goes back to its approvers. Returns the
    columns that it set.
    """
    fresh = _as_of_now(change)
    _set(change, fresh)
    return fresh


def _set(change: ChangeRequest, columns: Mapping[str, Any]) -> None:
    for name, value in columns.items():
        setattr(change, name, value)


def _as_of_now(change: ChangeRequest) -> dict[str, Any]:
    bound = evidence.bind(change)
    return {
        "evidence_hash": bound.digest,
        "required": [one.to_json() for one in bound.required],
        "golden": list(bound.golden),
    }


def lock(change: ChangeRequest) -> None:
    """Inside a transaction: the row is still what was looked at, and nobody else decides now."""
    rows = ChangeRequest.objects.select_for_update(no_key=True, of=("self",))
    same = rows.filter(
        pk=change.pk, state=ChangeState.SUBMITTED, evidence_hash=change.evidence_hash
    )
    if not same.exists():
        raise Conflict(
            f"Someone else decided on the {change} at the same time. Reload the page.",
            code="change_state",
        )
    forget_loaded(change)


def forget_loaded(change: Decidable) -> None:
    """So that approvals are read again, not taken from what was prefetched."""
    getattr(change, "_prefetched_objects_cache", {}).pop("approvals", None)


def give(
    *, actor: User, change: ChangeRequest, by: Given, comment: str, is_emergency: bool = False
) -> Approval:
    """Inside the transaction of the decision."""
    at = clock.now()
    expires_at = at + timedelta(seconds=VALID_SECONDS)
    made = Approval.objects.create(
        change=change,
        user=actor,
        is_approved=True,
        as_role=by.capacity,
        stands_for_id=by.stands_for_id,
        is_emergency=is_emergency,
        comment=comment,
        evidence_hash=change.evidence_hash,
        at=at,
        expires_at=expires_at,
    )
    forget_loaded(change)
    return made


def note_partial(*, actor: User, change: ChangeRequest, comment: str) -> None:
    """Inside the transaction of an approval that is not the last one."""
    words = approvals.standing_of(change).words
    trail.record(
        actor=actor,
        action=audit_actions.APPROVAL_GIVEN,
        obj=change,
        label=str(change),
        team_slug=change.team.slug,
        after={"state": change.state, "approvals": words},
        reason=comment,
        evidence=change.evidence_hash,
    )
    _note(change, "approval", f"approved; {words}", actor)
    schedule(change)


def schedule(change: ChangeRequest) -> None:
    """The sweeper looks when the request or the first approval ends, whatever is sooner."""
    ChangeRequest.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED).update(
        next_check_at=next_look(change.pk, change.deadline_at)
    )


def next_look(change_id: int, deadline_at: datetime | None) -> datetime | None:
    rows = Approval.objects.filter(change=change_id, is_approved=True, void_reason="")
    first = rows.aggregate(first=Min("expires_at"))["first"]
    return min((at for at in (deadline_at, first) if at is not None), default=None)


def is_approved_now(change: ChangeRequest) -> bool:
    """Looked at anew before anything runs: the same evidence, and enough valid approvals."""
    fresh = evidence.digest(change)
    if fresh != change.evidence_hash:
        return False
    forget_loaded(change)
    live = [one for one in approvals.live_approvals(change) if one.evidence_hash == fresh]
    if any(one.is_emergency and may_still(one, change) for one in live):
        return True
    still = all(may_still(one, change) for one in live)
    return approvals.standing_of(change).is_satisfied and still


def void(change: ChangeRequest, reason: str) -> int:
    """Inside a transaction. Returns how many approvals are void now that were not before."""
    return _void(change, [one.pk for one in _open(change)], reason)


def void_lapsed(change: ChangeRequest) -> int:
    """Approvals whose time is over, and those of people who may not approve any more."""
    at = clock.now()
    late = [one.pk for one in _open(change) if one.expires_at is not None and one.expires_at <= at]
    gone = [one.pk for one in _open(change) if one.pk not in late and not may_still(one, change)]
    with transaction.atomic():
        return _void(change, late, _EXPIRED) + _void(change, gone, _NO_LONGER)


def _open(change: ChangeRequest) -> list[Approval]:
    rows = Approval.objects.filter(change=change, is_approved=True, void_reason="")
    return list(rows.select_related("user"))


def _void(change: ChangeRequest, ids: list[int], reason: str) -> int:
    rows = Approval.objects.filter(pk__in=ids, void_reason="")
    voided = rows.update(void_reason=reason)
    forget_loaded(change)
    if voided:
        trail.record(
            actor=SYSTEM,
            action=audit_actions.APPROVAL_VOIDED,
            obj=change,
            label=str(change),
            team_slug=change.team.slug,
            before={"approvals": voided},
            after={"approvals": 0},
            reason=reason,
            evidence=change.evidence_hash,
        )
        _note(change, "approval void", reason, SYSTEM)
    return voided


def may_still(one: GivenApproval, change: Decidable) -> bool:
    """A lead's or admin's approval lasts as long as they are one, a delegate's while they are more
    than a viewer, and that of people whom a rule names while they are in the team.
    """
    lasting = {
        Capacity.LEAD: Action.EMERGENCY_OVERRIDE,
        Capacity.ADMIN: Action.EMERGENCY_OVERRIDE,
        Capacity.DELEGATE: Action.REQUEST_CHANGE,
    }
    return policy.is_allowed(one.user, lasting.get(Capacity(one.as_role), Action.VIEW), change)


def clean(comment: str, *, field: str = "comment") -> str:
    text = comment.strip()
    if len(text) > LONGEST_COMMENT:
        raise Invalid(
            f"The {field} is longer than {LONGEST_COMMENT} characters.", fields={field: "too long"}
        )
    return text


def _note(change: ChangeRequest, kind: str, message: str, actor: policy.Actor) -> None:
    timeline.note(
        deployment=change.deployment,
        kind=kind,
        message=message,
        actor=actor,
        revision_number=change.revision.number if change.revision else None,
    )
