"""Decide on batch jobs that the budget has no room for. What is decided on no longer changes: version,
input and limits are fixed when it was planned.
"""

from __future__ import annotations

from django.db import transaction

from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.batch.selectors import jobs
from deployments.batch.services import audit_actions, limits, requests, transitions
from deployments.models import BatchJob
from portal.accounts import policy
from portal.accounts.local import step_up
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM, Action
from portal.core import clock
from portal.core.errors import Conflict, Invalid
from portal.core.wakeups import wake


def approve(*, actor: User, job_id: int, comment: str = "") -> BatchJob:
    job = _decidable(actor, job_id)
    step_up.require(actor)
    _require_submitted(job)
    text = requests.clean(comment, field="comment")
    # Deployments that were approved since do not leave it the GPUs.
    pods = BatchSettings.from_json(job.pods)
    limits.require_quota(job.team, pods, without=job)
    with transaction.atomic():
        requests.start(
            actor, job, audited=audit_actions.APPROVED, columns=_decision(actor, text), reason=text
        )
        wake(requests.TASK, job.pk)
    return job


def reject(*, actor: User, job_id: int, comment: str = "") -> BatchJob:
    job = _decidable(actor, job_id)
    _require_submitted(job)
    text = requests.clean(comment, field="comment")
    if not text:
        raise Invalid(
            "Give a reason, so the requester can fix it.", fields={"comment": "say what to change"}
        )
    transitions.move(
        actor=actor,
        job=job,
        to=BatchState.REJECTED,
        audited=audit_actions.REJECTED,
        reason=text,
        columns=_decision(actor, text),
    )
    return job


def expire(job: BatchJob) -> None:
    transitions.move(
        actor=SYSTEM,
        job=job,
        to=BatchState.FAILED,
        audited=audit_actions.FAILED,
        reason="No decision was made in time. Resume it if it is still needed.",
    )


def _decidable(actor: User, job_id: int) -> BatchJob:
    job = jobs.get_visible(actor=actor, job_id=job_id)
    policy.require(actor, Action.APPROVE, job.team, requester_id=job.requester_id)
    return job


def _require_submitted(job: BatchJob) -> None:
    if job.state != BatchState.SUBMITTED:
        raise Conflict(
            f"The {job} is {job.state}; only a submitted one can be decided on.", code="batch_state"
        )


def _decision(actor: User, comment: str) -> dict[str, object]:
    return {"decided_by": actor, "decision_comment": comment, "decided_at": clock.now()}
