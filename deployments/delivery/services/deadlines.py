"""End change requests that a cluster does not carry out in time."""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime, timedelta
from math import inf

from deployments import audit_actions
from deployments.changes.services import transitions
from deployments.models import ChangeRequest, Deployment
from deployments.serving.services.desired_state import PROGRESS_SECONDS
from deployments.states import ChangeKind, ChangeState
from portal.accounts.policy import SYSTEM

# Requests that end when the deployment is observed ready.
UNTIL_READY = (ChangeKind.DEPLOY, ChangeKind.SCALE, ChangeKind.START)

REMOVALS = (ChangeKind.STOP, ChangeKind.RETIRE)


def is_late(deployment: Deployment, at: datetime) -> bool:
    deadline = deployment.progress_deadline_at
    return deadline is not None and at >= deadline


def seconds_since_change(deployment: Deployment, at: datetime) -> float:
    """Return the seconds since the desired state changed. Endless if it never did."""
    deadline = deployment.progress_deadline_at
    return inf if deadline is None else PROGRESS_SECONDS - (deadline - at).total_seconds()


def postpone(deployment_ids: Collection[int], at: datetime) -> None:
    """Restart the progress deadline of deployments that wait in a queue, so that they have all their time once
    admitted.
    """
    if deployment_ids:
        Deployment.objects.filter(pk__in=deployment_ids).update(
            progress_deadline_at=at + timedelta(seconds=PROGRESS_SECONDS)
        )


def end_late(change: ChangeRequest, reason: str) -> None:
    """Fail the request, so that none is applied for ever. The desired state stays, and reconciliation
    goes on. Rollouts end by the deadlines of their own phases.
    """
    if change.kind not in (*UNTIL_READY, *REMOVALS):
        return
    is_removal = change.kind in REMOVALS
    if is_removal:
        reason = f"Not removed in time. Slipway keeps trying. {reason}"
    transitions.move(
        actor=SYSTEM,
        change=change,
        to=ChangeState.FAILED,
        action=audit_actions.CHANGE_FAILED,
        reason=reason,
    )


def applying(deployment: Deployment) -> ChangeRequest | None:
    rows = ChangeRequest.objects.select_related("deployment__team")
    return rows.filter(deployment=deployment, state=ChangeState.APPLYING).first()
