"""The one way in which a change request moves between its states."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

from django.db import transaction

from deployments.changes.selectors import shown_evidence
from deployments.models import ChangeRequest, Deployment
from deployments.serving.services import timeline
from deployments.states import CHANGE, ChangeState, DeploymentState
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
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
) -> None:
    """Compare-and-swap on the state that `change` was read with; raises Conflict when it moved on."""
    old = ChangeState(change.state)
    if to not in CHANGE[old]:
        raise Conflict(f"The {change} is {old}, so it cannot become {to}.", code="change_state")
    finished_at = None if CHANGE[to] else clock.now()
    decided = _decided(change, old, to)
    with transaction.atomic():
        changed = ChangeRequest.objects.filter(pk=change.pk, state=old).update(
            state=to,
            decided=decided,
            state_reason=reason,
            deadline_at=deadline_at,
            next_check_at=next_check_at or deadline_at,
            finished_at=finished_at,
        )
        if changed == 0:
            raise Conflict(
                f"Someone else decided on the {change} at the same time. Reload the page.",
                code="change_state",
            )
        trail.record(
            actor=actor,
            action=action,
            obj=change,
            label=str(change),
            team_slug=change.team.slug,
            before={"state": old},
            after={"state": to},
            reason=reason,
            evidence=change.evidence_hash,
        )
    change.state, change.state_reason, change.decided = to, reason, decided
    change.deadline_at, change.finished_at = deadline_at, finished_at


def _decided(change: ChangeRequest, old: ChangeState, to: ChangeState) -> dict[str, Any]:
    """Kept with the decision itself; forgotten when the request goes back to its approvers."""
    if old == ChangeState.SUBMITTED:
        return shown_evidence.of(change)
    return {} if to == ChangeState.SUBMITTED else change.decided


def finish(*, actor: Actor, change: ChangeRequest, action: AuditAction, reason: str) -> None:
    """After `done`, `failed` and the ways of not being done: a deployment that never began is closed."""
    deployment = change.deployment
    timeline.note(deployment=deployment, kind=change.state, message=reason, actor=actor)
    never_began = deployment.stable_revision_id is None
    if not never_began or change.state == ChangeState.DONE:
        return
    Deployment.objects.filter(pk=deployment.pk, is_retired=False).update(
        is_retired=True,
        state=DeploymentState.RETIRED,
        state_reason=reason,
        next_check_at=None,
    )
    trail.record(
        actor=actor,
        action=action,
        obj=deployment,
        label=str(deployment),
        team_slug=change.team.slug,
        before={"state": deployment.state},
        after={"state": DeploymentState.RETIRED},
        reason=reason,
    )
