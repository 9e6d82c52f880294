"""Batch jobs as people see them: their rows, their progress and their cost."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from django.db.models import QuerySet

from deployments.batch.domain import queues, reports
from deployments.batch.domain.settings import BatchSettings
from deployments.models import BatchJob
from fleet.costs.domain.results import GroupBy
from fleet.costs.selectors import costs
from portal.accounts import policy
from portal.accounts.models import User
from portal.core import clock
from portal.core.errors import NotFound
from portal.core.single_row import find_one

_CENT: Final = Decimal("0.01")
_RELATED: Final = ("team", "version__model__team", "cluster", "requester", "decided_by")


def list_visible_to(actor: User, *, team_slug: str = "", state: str = "") -> QuerySet[BatchJob]:
    """Return the jobs of the actor's teams, the newest first."""
    rows = BatchJob.objects.filter(team__in=policy.visible_teams(actor)).select_related(*_RELATED)
    if team_slug:
        rows = rows.filter(team__slug=team_slug)
    if state:
        rows = rows.filter(state=state)
    return rows.defer("files").order_by("-id")


def list_by_ids(ids: Collection[int]) -> list[BatchJob]:
    """Return jobs as they are listed, the oldest first. The caller has checked that they are visible."""
    rows = BatchJob.objects.filter(pk__in=ids).select_related(*_RELATED)
    return list(rows.defer("files").order_by("id"))


def get_visible(*, actor: User, job_id: int) -> BatchJob:
    job = find_one(list_visible_to(actor).filter(pk=job_id))
    if job is None:
        raise NotFound(f"Batch job {job_id} does not exist, or you are not in its team.")
    return job


def get_visible_by_name(*, actor: User, team_slug: str, name: str) -> BatchJob:
    job = None
    if "\0" not in team_slug + name:
        rows = list_visible_to(actor, team_slug=team_slug)
        job = rows.filter(name=name).first()
    if job is None:
        raise NotFound(f"Batch job {team_slug}/{name} does not exist, or you are not in its team.")
    return job


def get_job(job_id: int) -> BatchJob:
    job = find_one(BatchJob.objects.select_related(*_RELATED).filter(pk=job_id))
    if job is None:
        raise NotFound(f"Batch job {job_id} does not exist.")
    return job


def label_of(job: BatchJob) -> str:
    """Return the job's label in the ledger, where a deployment's name would be; no deployment has a slash in its
    name.
    """
    return f"batch/{job.name}"


@dataclass(frozen=True, slots=True)
class JobProgress:
    """The progress of a job. `spent_amount` is sealed and estimated cost; None if it is not known.

    `done_at` is when it will be done at this rate, and `forecast_amount` what it will have cost then.
    """

    chunks: int
    done_chunks: int
    spent_amount: Decimal | None
    forecast_amount: Decimal | None
    done_at: datetime | None


@dataclass(frozen=True, slots=True)
class QueueProgress:
    """The messages of the queue that a job drains. `waiting` is the number at `waiting_at`; None if it is not
    known.

    `retried` counts tries after the first; `dead_letters` are messages that were moved to that stream.
    """

    waiting: int | None
    waiting_at: datetime | None
    answered: int
    dead_letters: int
    retried: int
    group: str
    dead_letters_in: str


def queue_of(job: BatchJob) -> QueueProgress | None:
    """Return the progress of a job that drains a queue. None for a job over files."""
    if not job.is_queue:
        return None
    drained = reports.read_drained(job.drained)
    queue = queues.read(job.input, job.output, BatchSettings.from_json(job.pods))
    return QueueProgress(
        waiting=drained.waiting,
        waiting_at=datetime.fromisoformat(drained.waiting_at) if drained.waiting_at else None,
        answered=job.done_rows - job.failed_rows,
        dead_letters=job.failed_rows,
        retried=drained.retried,
        group=queue.group,
        dead_letters_in=queue.dead_letters,
    )


def progress_of(job: BatchJob) -> JobProgress:
    total = job.chunks.count()
    done = job.chunks.exclude(done_at=None).count()
    spent = _spent(job)
    forecast = at = None
    if job.started_at and job.finished_at is None and job.done_rows and job.total_rows:
        part = Decimal(job.total_rows) / job.done_rows
        elapsed = clock.now() - job.started_at
        at = job.started_at + timedelta(seconds=elapsed.total_seconds() * float(part))
        # Nothing was metered yet: that is no forecast of nothing.
        forecast = (spent * part).quantize(_CENT) if spent else None
    return JobProgress(total, done, spent, forecast, at)


def _spent(job: BatchJob) -> Decimal | None:
    if job.started_at is None:
        return Decimal(0)
    table = costs.table(
        team_slugs=[job.team.slug],
        start=job.started_at.replace(minute=0, second=0, microsecond=0),
        end=clock.now(),
        group_by=GroupBy.DEPLOYMENT,
        deployment=label_of(job),
    )
    return None if table.is_unpriced else table.total_amount.quantize(_CENT)
