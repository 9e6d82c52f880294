"""One pass over a running job that drains a queue, and its end."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from deployments.batch.domain import reports
from deployments.batch.domain.observation import ObservedQueue
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.services import cluster_job, queue_job
from deployments.batch.services import reports as reported
from deployments.models import BatchJob
from fleet.kube.domain.errors import NotOwned, ObjectInvalid, Refused
from portal.core import clock, leases
from portal.core.definitions.counts import format_count
from portal.core.leases import Lease

_OVER: Final = "The limit of {hours} is reached. Resume the job to continue."


@dataclass(frozen=True, slots=True)
class Ending:
    state: BatchState
    reason: str


def run(job: BatchJob, lease: Lease, *, is_late: bool) -> Ending | ObservedQueue:
    """Make one pass; return what the workers do, or the job's ending."""
    store = BatchStore()
    reported.collect(job, lease, store)
    settings = BatchSettings.from_json(job.pods)
    if ending := _ending(job, settings, is_late=is_late):
        return ending
    try:
        if reported.needs_addresses(job):
            cluster_job.apply_links(job, reported.write_list(job, store))
            job.signed_at = clock.now()
            save(job, lease, signed_at=job.signed_at, drained=job.drained)
        observed = queue_job.ensure(job)
    except (NotOwned, Refused, ObjectInvalid) as error:
        return Ending(BatchState.FAILED, f"The cluster rejected the job: {error.message}")
    reported.adopt(job, lease, store, has_workers=observed.has_workers)
    if observed.failure:
        return Ending(BatchState.FAILED, f"{observed.failure} Resume the job to continue.")
    if observed.is_empty:
        _note_empty(job, lease)
    return observed


def end(job: BatchJob, lease: Lease, *, is_late: bool) -> bool:
    """Whether nothing runs any more. Workers first give back what they hold, and their last reports still count."""
    queue_job.remove_workers(job)
    if queue_job.has_pods(job) and not is_late:
        return False
    store = BatchStore()
    reported.collect(job, lease, store)
    while reported.adopt(job, lease, store, has_workers=False):
        pass
    queue_job.remove(job)
    return True


def _ending(job: BatchJob, settings: BatchSettings, *, is_late: bool) -> Ending | None:
    dead = job.failed_rows - reports.read_drained(job.drained).dead_before
    if dead > settings.error_limit:
        letters = (
            "1 message is a dead letter" if dead == 1 else f"{dead:,} messages are dead letters"
        )
        reason = f"{letters}, more than {settings.error_limit:,}. First: {job.first_error}"
        return Ending(BatchState.FAILED, reason)
    if is_late:
        return Ending(
            BatchState.SUCCEEDED, _OVER.format(hours=format_count(settings.hours, "hour"))
        )
    return None


def _note_empty(job: BatchJob, lease: Lease) -> None:
    """Record the empty queue that KEDA reports, in place of what the workers reported last."""
    drained = reports.read_drained(job.drained)
    if drained.waiting != 0:
        at = clock.now().isoformat()
        job.drained = replace(drained, waiting=0, waiting_at=at).to_json()
        save(job, lease, drained=job.drained)


def save(job: BatchJob, lease: Lease, **columns: object) -> None:
    """Save columns of the job. Raises Conflict if it changed state, or another worker took over."""
    held = BatchJob.objects.filter(pk=job.pk, state=job.state, lease_token=lease.token)
    if not held.update(**columns):
        raise leases.build_lost_error(job)
