"""The transitions of a batch job between its states: the only writer of `BatchJob.state`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction

from deployments.batch.domain.states import FINAL, TRANSITIONS, BatchState
from deployments.batch.services import notifications
from deployments.models import BatchJob
from portal.accounts.policy import Actor
from portal.audit import trail
from portal.audit.actions import AuditAction
from portal.core import clock
from portal.core.errors import Conflict


def move(
    *,
    actor: Actor,
    job: BatchJob,
    to: BatchState,
    audited: AuditAction,
    reason: str = "",
    time_limit: timedelta | None = None,
    columns: Mapping[str, Any] | None = None,
) -> None:
    """Move the job by compare-and-swap on the state that it was read with. Raises Conflict if it changed meanwhile.

    The row is due at once, or never again if the state is final.
    """
    old, at = BatchState(job.state), clock.now()
    if to not in TRANSITIONS[old]:
        raise Conflict(f"The {job} is {old}, so it cannot become {to}.", code="batch_state")
    is_final = to in FINAL
    changed: dict[str, Any] = {
        "state_reason": reason,
        "detail": "",
        "queue_state": None,
        **(columns or {}),
        "state": to,
        "deadline_at": None if time_limit is None else at + time_limit,
        "next_check_at": None if is_final else at,
        "finished_at": at if is_final else None,
    }
    with transaction.atomic():
        rows = BatchJob.objects.filter(pk=job.pk, state=old)
        if not rows.update(**changed):
            raise Conflict(
                f"The {job} changed at the same time. Reload the page.", code="batch_state"
            )
        record(actor, job, audited, before=old, after=to, reason=reason)
        for name, value in changed.items():
            setattr(job, name, value)
        is_decision = old is BatchState.SUBMITTED and to is BatchState.RUNNING
        if is_final or is_decision or to is BatchState.SUBMITTED:
            notifications.notify(job)


def record(
    actor: Actor,
    job: BatchJob,
    audited: AuditAction,
    *,
    before: str = "",
    after: str = "",
    reason: str = "",
) -> None:
    trail.record(
        actor=actor,
        action=audited,
        obj=job,
        label=str(job),
        team_slug=job.team.slug,
        before={"state": str(before)} if before else {},
        after={
            "state": str(after),
            "version": job.version.label,
            "input": job.input,
            "output": job.output,
            "rows": job.total_rows,
            "cost_limit": None if job.cost_limit_amount is None else str(job.cost_limit_amount),
            **job.pods,
        },
        reason=reason,
    )
