"""Deciding on change requests. Whoever approves binds to exactly the evidence that was shown."""

from __future__ import annotations

from datetime import timedelta

from django.db import transaction

from deployments.domain import specs
from deployments.domain.states import ChangeState
from deployments.models import Approval, ChangeRequest
from deployments.selectors import changes as change_selectors
from deployments.selectors import plans
from deployments.services import actions, change_states, preflight, timeline
from deployments.services.requests import (
    request_canary,
    request_deploy,
    request_retire,
    request_roll_back,
)
from portal.accounts import policy
from portal.accounts.models import Team, User
from portal.accounts.policy import SYSTEM, Action
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
    "withdraw",
]


def approve(*, actor: User, change_id: int, evidence_hash: str, comment: str = "") -> ChangeRequest:
    """Approve what was shown and start applying it at once.

    Raises Conflict when the state or the evidence has changed since it was shown, Invalid or
    QuotaExceeded when the version or the quota no longer permits it.
    """
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.APPROVE, change, requester_id=change.requester_id)
    _require_submitted(change)
    _require_same_evidence(change, evidence_hash)
    at = clock.now()
    with transaction.atomic():
        # Two approvals at once must not both fit into the same last GPUs.
        Team.objects.select_for_update(no_key=True).get(pk=change.team.pk)
        _require_still_possible(change)
        change_states.move(
            actor=actor,
            change=change,
            to=ChangeState.APPROVED,
            action=actions.CHANGE_APPROVED,
            reason=comment.strip(),
            deadline_at=at + timedelta(seconds=change_states.APPROVED_SECONDS),
            next_check_at=at,
        )
        _decide(actor, change, comment, is_approved=True)
        wake("deployments.apply_change", change.pk)
    return change


def reject(*, actor: User, change_id: int, comment: str = "") -> ChangeRequest:
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.APPROVE, change, requester_id=change.requester_id)
    _require_submitted(change)
    if not comment.strip():
        raise Invalid(
            "Say why, so that the requester can mend it.", fields={"comment": "say what to change"}
        )
    with transaction.atomic():
        change_states.move(
            actor=actor,
            change=change,
            to=ChangeState.REJECTED,
            action=actions.CHANGE_REJECTED,
            reason=comment.strip(),
        )
        _decide(actor, change, comment, is_approved=False)
        _close(actor, change, f"rejected: {comment.strip()}")
    return change


def withdraw(*, actor: User, change_id: int, reason: str = "") -> ChangeRequest:
    """Anyone who may request may also take a request back before it is applied."""
    change = change_selectors.get_visible(actor=actor, change_id=change_id)
    policy.require(actor, Action.REQUEST_CHANGE, change)
    with transaction.atomic():
        change_states.move(
            actor=actor,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=actions.CHANGE_WITHDRAWN,
            reason=reason.strip(),
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


def _require_submitted(change: ChangeRequest) -> None:
    if change.state != ChangeState.SUBMITTED:
        raise Conflict(
            f"{change} is {change.state}; only a submitted request can be decided on.",
            code="change_state",
        )


def _require_same_evidence(change: ChangeRequest, shown: str) -> None:
    fresh = plans.evidence_of(change)
    if fresh != change.evidence_hash:
        ChangeRequest.objects.filter(pk=change.pk, state=ChangeState.SUBMITTED).update(
            evidence_hash=fresh
        )
        change.evidence_hash = fresh
    if shown != fresh:
        raise Conflict(
            "What you saw has changed since: look at the request again, then decide.",
            code="evidence_changed",
        )


def _require_still_possible(change: ChangeRequest) -> None:
    """The version may have been archived and the quota used up since the request."""
    if change.revision is None:
        return
    version = preflight.check_version(change.revision.version)
    if version.is_refusal:
        raise Invalid(f"{version.detail} {version.fix}", code="version_not_ready")
    quota = preflight.check_quota(
        change.team, specs.from_json(change.revision.spec), without_change_id=change.pk
    )
    if quota.is_refusal:
        raise QuotaExceeded(f"{quota.detail} {quota.fix}")


def _decide(actor: User, change: ChangeRequest, comment: str, *, is_approved: bool) -> None:
    Approval.objects.create(
        change=change,
        user=actor,
        is_approved=is_approved,
        comment=comment.strip(),
        evidence_hash=change.evidence_hash,
        at=clock.now(),
    )
    if is_approved:
        timeline.note(
            deployment=change.deployment,
            kind="approved",
            message=f"approved {change.kind.replace('_', ' ')}",
            actor=actor,
            revision_number=change.revision.number if change.revision else None,
        )


def _close(actor: policy.Actor, change: ChangeRequest, words: str) -> None:
    change_states.finish(
        actor=actor, change=change, action=actions.DEPLOYMENT_RETIRED, reason=words
    )
