"""Ends the open requests of a deployment or pipeline that is stopped."""

from __future__ import annotations

from deployments import audit_actions
from deployments.changes.services import transitions
from deployments.models import ChangeRequest, Deployment, Pipeline
from deployments.serving.services.stopping import begin
from deployments.states import ChangeKind, ChangeState
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.core.errors import Conflict

_SUBJECTS = ("deployment__team", "deployment__cluster", "pipeline__team", "pipeline__cluster")
_RETIRED = "It never became ready, and its retirement was requested."


def end_start(*, actor: User, deployment: Deployment) -> None:
    """Stop a deployment at the request to retire it, if it never served and still tries to start.
    Does nothing otherwise. Call inside the transaction of the request.
    """
    applying = ChangeRequest.objects.filter(
        deployment=deployment, state=ChangeState.APPLYING, rollout=None
    )
    if deployment.first_ready_at is not None or not applying.exists():
        return
    lock_running(deployment)
    if Deployment.objects.filter(pk=deployment.pk).exclude(first_ready_at=None).exists():
        raise Conflict(
            f"{deployment} just became ready. Review it, then send the request again.", code="ready"
        )
    end_open_requests(deployment, _RETIRED)
    begin(actor=actor, deployment=deployment, reason=_RETIRED)


def lock_running(deployment: Deployment) -> None:
    rows = Deployment.objects.select_for_update(no_key=True, of=("self",))
    if rows.filter(pk=deployment.pk, is_stopped=False, is_retiring=False).first() is None:
        raise Conflict(f"{deployment} was just stopped or retired.", code="stopped")


def end_open_requests(subject: Deployment | Pipeline, reason: str) -> None:
    """End open requests, except a retirement and the request of a rollout, which ends with it."""
    rows = subject.changes.exclude(kind=ChangeKind.RETIRE)
    related = rows.select_related("team", "requester", *_SUBJECTS)
    for change in related.filter(state__in=(ChangeState.SUBMITTED, ChangeState.APPROVED)):
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.WITHDRAWN,
            action=audit_actions.CHANGE_WITHDRAWN,
            reason=reason,
        )
    for change in related.filter(state=ChangeState.APPLYING, rollout=None):
        transitions.move(
            actor=SYSTEM,
            change=change,
            to=ChangeState.FAILED,
            action=audit_actions.CHANGE_FAILED,
            reason=reason,
        )
