"""The transitions of a change request between its states: the only writer of `ChangeRequest.state`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments.changes.selectors import shown_evidence
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import subject_of
from deployments.models import ChangeRequest, Deployment
from deployments.plans.domain import descriptions
from deployments.states import CHANGE, ChangeState, DeploymentState
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock, tracing
from portal.core.errors import AlreadyDone, Conflict

# Why a subject that never began is pending, by the state of its first request.
PENDING_REASONS: Final[Mapping[ChangeState, str]] = {
    ChangeState.SUBMITTED: "Waiting for approval.",
    ChangeState.APPROVED: "Approved. It is applied next.",
    ChangeState.APPLYING: "Approved. The cluster has not been observed yet.",
}
# What people call the end of a request that was not approved.
_DECISIONS: Final[Mapping[ChangeState, str]] = {
    ChangeState.REJECTED: "rejected",
    ChangeState.WITHDRAWN: "withdrawn",
    ChangeState.EXPIRED: "expired",
}
SUBMITTED_SECONDS: Final = 14 * 24 * 3600
APPROVED_SECONDS: Final = 3600


def move(
    *,
    actor: Actor,
    change: ChangeRequest,
    to: ChangeState,
    action: AuditAction,
    reason: str = "",
    deadline_at: datetime | None = None,
    next_check_at: datetime | None = None,
    reviewed: ReviewedChange | None = None,
) -> None:
    """Move the request by compare-and-swap on the state that it was read with. Raises Conflict if it changed
    meanwhile.

    `reviewed` is what was just evaluated for the decision, for the snapshot of what was decided on.
    """
    old = ChangeState(change.state)
    if to not in CHANGE[old]:
        raise Conflict(f"The {change} is {old}, so it cannot become {to}.", code="change_state")
    finished_at = None if CHANGE[to] else clock.now()
    decided = _decided(change, old, to, reviewed)
    with transaction.atomic():
        updated = ChangeRequest.objects.filter(pk=change.pk, state=old).update(
            state=to,
            decided=decided,
            state_reason=reason,
            deadline_at=deadline_at,
            next_check_at=next_check_at or deadline_at,
            finished_at=finished_at,
        )
        if updated == 0:
            raise decided_by_another(change)
        record(
            actor,
            change,
            action,
            before={"state": old},
            after={"state": to},
            reason=reason,
        )
        _explain_pending(change, to)
        _trace(change, to)
    change.state, change.state_reason, change.decided = to, reason, decided
    change.deadline_at, change.finished_at = deadline_at, finished_at


def _explain_pending(change: ChangeRequest, to: ChangeState) -> None:
    """Keep the reason of a subject that never began in step with its request."""
    if to in PENDING_REASONS:
        rows = type(change.subject).objects.filter(pk=change.subject.pk, observed_at=None)
        rows.filter(state=DeploymentState.PENDING).update(state_reason=PENDING_REASONS[to])


def _trace(change: ChangeRequest, to: ChangeState) -> None:
    """Note the new state in the change's trace. While a change is applied, what is done to its deployment belongs
    to that trace.
    """
    if not change.trace:
        return
    transaction.on_commit(
        lambda: tracing.note(
            f"change request {to}", parent=change.trace, attributes={"slipway.change": change.pk}
        )
    )
    if change.deployment_id is None:
        return
    rows = Deployment.objects.filter(pk=change.deployment_id)
    if to == ChangeState.APPLYING:
        rows.update(trace=change.trace)
    elif not CHANGE[to]:
        rows.filter(trace=change.trace).update(trace="")


def decided_by_another(change: ChangeRequest) -> Conflict:
    """Return the error for a request that somebody decided on since it was read."""
    row = ChangeRequest.objects.filter(pk=change.pk).first()
    if row is not None and row.state != ChangeState.SUBMITTED:
        return already_decided(row)
    return Conflict(f"The {change} changed at the same time. Reload the page.", code="change_state")


def already_decided(change: ChangeRequest) -> AlreadyDone:
    """Return the error that says who decided on the request, and when."""
    last = change.approvals.filter(void_reason="").select_related("user").order_by("-id").first()
    verb, who, at = _DECISIONS.get(ChangeState(change.state), "approved"), "", change.finished_at
    if last is not None and last.is_approved == (verb == "approved"):
        who, at = last.user.display_name, last.at
    seconds = (clock.now() - (at or clock.now())).total_seconds()
    message = descriptions.describe_already(verb, who, seconds=seconds)
    return AlreadyDone(message, code="change_state")


def record(
    actor: Actor,
    change: ChangeRequest,
    action: AuditAction,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    reason: str = "",
) -> None:
    """Add an audit line about the request."""
    trail.record(
        actor=actor,
        action=action,
        obj=change,
        team_slug=change.team.slug,
        before=before,
        after=after,
        reason=reason,
        evidence=change.evidence_hash,
    )


def close(*, actor: Actor, change: ChangeRequest, reason: str) -> None:
    """Note the end of a request after a rejection, a withdrawal or an expiry, and retire a subject that never began."""
    subject = subject_of(change)
    subject.note(change, kind=change.state, message=reason, actor=actor)
    subject.retire_unbegun(change, actor=actor, reason=reason)


def _decided(
    change: ChangeRequest, old: ChangeState, to: ChangeState, reviewed: ReviewedChange | None
) -> dict[str, Any]:
    """Return the columns stored with a decision, which are removed when the request goes back to its approvers."""
    if old == ChangeState.SUBMITTED:
        is_approved = to == ChangeState.APPROVED
        shown = shown_evidence.collect_evidence(change, reviewed, is_approved=is_approved)
        return shown.to_json()
    return {} if to == ChangeState.SUBMITTED else change.decided
