"""Queue notifications about a batch job. Call inside its transaction."""

from __future__ import annotations

from django.urls import reverse

from deployments.batch.domain.states import BatchState
from deployments.models import BatchJob
from portal.notifications import events, services


def notify(job: BatchJob) -> None:
    """Its approvers when it waits for them, its team when it has ended."""
    is_request = job.state == BatchState.SUBMITTED
    event = events.BATCH_REQUESTED if is_request else events.BATCH_FINISHED
    verb = "approval needed" if is_request else job.state
    services.notify(
        team=job.team,
        event=event.code,
        subject=f"Batch job {job.team.slug}/{job.name}: {verb}",
        message=_message(job),
        path=reverse("batch-job", args=(job.team.slug, job.name)),
        data={"batch_job": job.pk, "attempt": job.attempt},
    )


def _message(job: BatchJob) -> str:
    parts = [job.state_reason]
    if job.total_rows is not None:
        parts.append(f"{job.done_rows:,} of {job.total_rows:,} rows are done.")
    if job.failed_rows:
        parts.append(f"{job.failed_rows:,} have no answer.")
    if job.state == BatchState.SUCCEEDED:
        parts.append(f"The output is in {job.output}.")
    return " ".join(part for part in parts if part)
