"""Batch jobs that wait for a decision, and who may take it."""

from __future__ import annotations

from django.db.models import QuerySet

from deployments.batch.domain.states import BatchState
from deployments.batch.selectors import jobs
from deployments.models import BatchJob
from portal.accounts import policy
from portal.accounts.approvers import ApproverRights
from portal.accounts.models import User
from portal.accounts.policy import Action
from portal.core.errors import Forbidden, NotFound


def list_waiting_for(user: User) -> QuerySet[BatchJob]:
    """Return the jobs that this person may decide on, the oldest first."""
    return limit_to_waiting(jobs.list_visible_to(user), user)


def first_waiting_for(user: User, most: int) -> list[BatchJob]:
    """Return the oldest `most` jobs that this person may decide on."""
    return jobs.list_by_ids(sorted(waiting_for(user))[:most])


def limit_to_waiting(rows: QuerySet[BatchJob], user: User) -> QuerySet[BatchJob]:
    ids = waiting_for(user)
    return rows.filter(pk__in=ids).order_by("id") if ids else rows.none()


def list_submitted(user: User) -> QuerySet[BatchJob]:
    """Return the jobs that wait for any approver, the newest first."""
    return jobs.list_visible_to(user, state=BatchState.SUBMITTED)


def list_decided(user: User) -> QuerySet[BatchJob]:
    """Return the jobs that a person approved or rejected, the newest first."""
    return jobs.list_visible_to(user).exclude(decided_at=None)


def count_waiting_for(user: User, rights: ApproverRights | None = None) -> int:
    return len(waiting_for(user, rights))


def why_not_decide(user: User, job: BatchJob) -> str:
    """Return why the person may not decide on the job. Empty if they may."""
    if job.state != BatchState.SUBMITTED:
        return f"The job is {job.state}."
    try:
        policy.require(user, Action.APPROVE, job.team, requester_id=job.requester_id)
    except (Forbidden, NotFound) as refusal:
        return refusal.message
    return ""


def waiting_for(user: User, rights: ApproverRights | None = None) -> list[int]:
    """Return the ids of jobs that this person may decide on."""
    submitted = BatchJob.objects.filter(
        state=BatchState.SUBMITTED, team__in=policy.visible_teams(user)
    )
    waiting = (
        submitted.exclude(requester=user)
        .select_related("requester")
        .only("team", "requester__service_team")
        .order_by()
    )
    rights = rights or ApproverRights(user)
    return [job.pk for job in waiting if rights.may_approve(job.team_id, job.requester)]
