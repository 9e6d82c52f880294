"""Queue notifications about a batch job. Call inside its transaction."""

from __future__ import annotations

from typing import Final

from django.urls import reverse

from deployments.batch.domain.states import BatchState
from deployments.models import BatchJob
from portal.notifications import events, services

_EVENTS: Final = {
    BatchState.SUBMITTED: (events.BATCH_REQUESTED, "approval needed"),
    BatchState.RUNNING: (events.BATCH_DECIDED, "approved"),
    BatchState.REJECTED: (events.BATCH_DECIDED, "rejected"),
}


def notify(job: BatchJob) -> None:
    """Notify the approvers when the job waits for them, and the team when it was decided on or has ended."""
    event, verb = _EVENTS.get(BatchState(job.state), (events.BATCH_FINISHED, job.state))
    services.notify(
        team=job.team,
        event=event.code,
        subject=f"Batch job {job.team.slug}/{job.name}: {verb}",
        message=_message(job),
        path=reverse("batch-job", args=(job.team.slug, job.name)),
        data={"batch_job": job.pk, "attempt": job.attempt},
    )


def _is_decision(job: BatchJob) -> bool:
    return job.state in (BatchState.RUNNING, BatchState.REJECTED)


def _message(job: BatchJob) -> str:
    decider = job.decided_by.display_name if job.decided_by else ""
    parts = [f"{decider} {_EVENTS[BatchState(job.state)][1]} it."] if _is_decision(job) else []
    parts.append(job.state_reason)
    if job.total_rows is not None:
        parts.append(f"{job.done_rows:,} of {job.total_rows:,} rows are done.")
    if job.failed_rows:
        parts.append(f"{job.failed_rows:,} have no answer.")
    if job.state == BatchState.SUCCEEDED:
        parts.append(f"The output is in {job.output}.")
    return " ".join(part for part in parts if part)
