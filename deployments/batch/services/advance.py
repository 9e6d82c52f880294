"""Carry batch jobs on. A worker may die at any line: each pass reads store and cluster again."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta
from typing import Final

from deployments.batch.domain import places
from deployments.batch.domain.observation import ObservedJob, ObservedQueue
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import FINAL, BatchState
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.selectors import jobs
from deployments.batch.services import (
    audit_actions,
    checkpoints,
    cluster_job,
    decisions,
    draining,
    planning,
    requests,
    transitions,
    uploads,
)
from deployments.batch.services import links as work_links
from deployments.models import BatchJob
from deployments.registry.gateways.object_store import ArtifactError
from fleet.kube.domain.errors import (
    ClusterError,
    NotOwned,
    ObjectInvalid,
    Refused,
    Throttled,
    Unreachable,
)
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.definitions.counts import format_count
from portal.core.errors import Conflict
from portal.core.leases import Lease

logger = logging.getLogger(__name__)
_EVERY: Final = timedelta(seconds=5)
# Soon after a cluster answers again everything arrives, however long it was away.
_UNREACHABLE_SECONDS: Final = 5.0
_CAP_SECONDS: Final = 60.0
_ENDED: Final = {
    BatchState.SUCCEEDED: audit_actions.SUCCEEDED,
    BatchState.FAILED: audit_actions.FAILED,
    BatchState.CANCELED: audit_actions.CANCELED,
}


def has_work() -> bool:
    """Whether a sweep would find something to do."""
    return leases.has_due(BatchJob) or uploads.has_expired()


def sweep(*, limit: int = 50) -> int:
    """Make one pass over each job that is due and return their number. Abandoned uploads of rows expire too."""
    uploads.expire()
    due = leases.due(BatchJob, limit=limit)
    for job_id in due:
        advance(job_id=job_id)
    return len(due)


def advance(*, job_id: int) -> None:
    """Observe the job, make one effect and record it. Do nothing while another worker holds it."""
    lease = leases.claim(BatchJob, job_id, seconds=planning.LEASE_SECONDS)
    if lease is None:
        return
    job = jobs.get_job(job_id)
    try:
        next_check_at = _step(job, lease)
    except planning.Lost:
        return
    except (ClusterError, ArtifactError) as error:
        _note(job, lease, str(getattr(error, "message", error)))
        least = error.retry_after_seconds if isinstance(error, Throttled) else 0.0
        cap = _UNREACHABLE_SECONDS if isinstance(error, Unreachable) else _CAP_SECONDS
        leases.back_off(BatchJob, lease, cap_seconds=cap, least_seconds=least)
        return
    except Conflict:
        # Somebody moved it meanwhile, and the row says what is next.
        next_check_at = clock.now()
    leases.release(BatchJob, lease, next_check_at=next_check_at)


def _step(job: BatchJob, lease: Lease) -> datetime | None:
    at = clock.now()
    is_late = job.deadline_at is not None and at >= job.deadline_at
    if job.state == BatchState.SUBMITTED and not is_late:
        return job.deadline_at
    if job.state == BatchState.STOPPING and not _end(job, lease, is_late=is_late):
        return at + _EVERY
    match job.state:
        case BatchState.PLANNING:
            _plan(job, lease, is_late=is_late)
        case BatchState.SUBMITTED:
            decisions.expire(job)
        case BatchState.RUNNING:
            step = _drain if job.is_queue else _run
            step(job, lease, is_late=is_late)
    if job.state in FINAL:
        return None
    return at + _EVERY if job.state == BatchState.RUNNING else at


def _plan(job: BatchJob, lease: Lease, *, is_late: bool) -> None:
    if is_late:
        planning.fail(job, "Its input could not be read in time. " + job.detail)
    else:
        planning.plan(job, lease)


def _drain(job: BatchJob, lease: Lease, *, is_late: bool) -> None:
    match draining.run(job, lease, is_late=is_late):
        case draining.Ending(state=state, reason=reason):
            _stop(job, state, reason)
        case observed:
            draining.save(job, lease, **_columns_of(observed))


def _run(job: BatchJob, lease: Lease, *, is_late: bool) -> None:
    store = BatchStore()
    if _is_over(job, store):
        return
    # Nobody may have looked while it waited in a queue.
    if is_late and not cluster_job.is_queued(job):
        _stop(
            job, BatchState.FAILED, "It was not done by its deadline. Resume the job to continue."
        )
        return
    try:
        if _needs_links(job):
            cluster_job.apply_links(job, work_links.write_lists(job, store))
            job.signed_at = clock.now()
            draining.save(job, lease, signed_at=job.signed_at)
        observed = cluster_job.ensure(job)
    except (NotOwned, Refused, ObjectInvalid) as error:
        _stop(job, BatchState.FAILED, f"The cluster rejected the job: {error.message}")
        return
    if observed.has_ended:
        # The last chunks may have been marked since the store was read.
        if not _is_over(job, store):
            reason = observed.failure or "The Job ended before all chunks were done."
            _stop(job, BatchState.FAILED, f"{reason} Resume the job to continue.")
        return
    columns = _columns_of(observed)
    if observed.queue:
        columns["deadline_at"] = cluster_job.prolong(job)
    draining.save(job, lease, **columns)


def _columns_of(observed: ObservedJob | ObservedQueue) -> dict[str, object]:
    queue = observed.queue
    return {"detail": observed.detail, "queue_state": queue.to_json() if queue else None}


def _is_over(job: BatchJob, store: BatchStore) -> bool:
    """Whether the job is over by what the store has: stop it if so."""
    if problem := checkpoints.collect(job, store):
        _stop(job, BatchState.FAILED, problem)
        return True
    limit = BatchSettings.from_json(job.pods).error_limit
    if job.failed_rows > limit:
        have = "has" if job.failed_rows == 1 else "have"
        reason = f"{format_count(job.failed_rows, 'row')} {have} no answer, more than {limit:,}. First: {job.first_error}"
        _stop(job, BatchState.FAILED, reason)
        return True
    if job.chunks.filter(done_at=None).exists():
        return False
    if missing := checkpoints.missing_parts(job, store):
        _stop(job, BatchState.FAILED, f"Part {missing[0]} of the output is missing.")
    elif 0 < job.failed_rows == job.done_rows:
        # Of a small input fewer rows than the error limit, and yet there is nothing to use.
        _stop(job, BatchState.FAILED, f"No row has an answer. First: {job.first_error}")
    else:
        _stop(job, BatchState.SUCCEEDED, "")
    return True


def _needs_links(job: BatchJob) -> bool:
    if job.signed_at is None:
        return True
    age = clock.now() - job.signed_at
    if age >= work_links.RENEW_AFTER:
        return True
    workers = work_links.workers_of(job)
    pending = job.chunks.filter(done_at=None).count()
    return age >= work_links.USED_UP_AFTER and pending > workers * work_links.LISTED


def _end(job: BatchJob, lease: Lease, *, is_late: bool) -> bool:
    """Remove what ran and move the job to its final state. False while something still ends.

    A cluster that stays unreachable ends the Job itself.
    """
    try:
        if job.is_queue:
            if not draining.end(job, lease, is_late=is_late):
                return False
        else:
            cluster_job.remove(job)
        BatchStore().delete_all(places.work_prefix(job.pk))
    except (ClusterError, ArtifactError) as error:
        if not is_late:
            raise
        logger.warning("%s: what it ran was not removed: %s", job, error)
    end = BatchState(job.ends_as)
    transitions.move(actor=SYSTEM, job=job, to=end, audited=_ENDED[end], reason=job.state_reason)
    return True


def _stop(job: BatchJob, ends_as: BatchState, reason: str) -> None:
    requests.stop(actor=SYSTEM, job=job, ends_as=ends_as, reason=reason)


def _note(job: BatchJob, lease: Lease, message: str) -> None:
    logger.warning("%s: %s", job, message)
    BatchJob.objects.filter(pk=job.pk, lease_token=lease.token).update(detail=message[:600])
