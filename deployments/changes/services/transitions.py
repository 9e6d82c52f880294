"""The transitions of a change request between its states: the only writer of `ChangeRequest.state`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments.changes.selectors import shown_evidence
from deployments.changes.selectors.evidence import ReviewedChange
from deployments.changes.selectors.subjects import subject_of
from deployments.models import ChangeRequest, Deployment
from deployments.states import CHANGE, ChangeState
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock, tracing
from portal.core.errors import Conflict

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
        _trace(change, to)
    change.state, change.state_reason, change.decided = to, reason, decided
    change.deadline_at, change.finished_at = deadline_at, finished_at


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
    return Conflict(
        f"Someone else decided on the {change} at the same time. Reload the page.",
        code="change_state",
    )


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
        return shown_evidence.collect_evidence(change, reviewed).to_json()
    return {} if to == ChangeState.SUBMITTED else change.decided
