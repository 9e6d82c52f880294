"""The ScaledJob of a job that drains a queue, on its cluster: applied, observed and removed. Each call can be repeated."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from deployments.batch.domain import csv_files, observation, queues, scaled_job
from deployments.batch.domain import job as job_objects
from deployments.batch.domain.observation import ObservedQueue
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.services import cluster_job
from deployments.models import BatchJob
from deployments.registry.domain import signatures
from deployments.serving.domain.queue_state import QueueState
from fleet.kube.domain.errors import NotAllowed
from fleet.kube.services import objects
from fleet.observation.services import workloads
from portal.core import clock
from portal.core.definitions import Rejected

_WORKERS: Final = (scaled_job.API_VERSION, scaled_job.KIND)
_OTHERS: Final = (
    (scaled_job.API_VERSION, scaled_job.AUTHENTICATION),
    ("networking.k8s.io/v1", "NetworkPolicy"),
    ("v1", "Secret"),
)


def ensure(job: BatchJob) -> ObservedQueue:
    """Create the ScaledJob if it is missing, and return what its workers do."""
    api_version, kind = _WORKERS
    made = objects.get(
        cluster_id=job.cluster_id,
        api_version=api_version,
        kind=kind,
        namespace=job.team.slug,
        name=cluster_job.name_of(job),
    )
    if made is None:
        _create(job)
        return ObservedQueue("")
    observed = observation.observe_queue(made, cluster_job.pods_of(job))
    try:
        waits = _read_queue_state(job)
        waiting = waits.message if waits else ""
    except NotAllowed as error:
        # Its workers run all the same.
        waits, waiting = None, f"whether workers wait for Kueue is not known: {error.message}"
    detail = "; ".join(part for part in (observed.detail, waiting) if part)
    return replace(observed, detail=detail, queue=waits)


def has_pods(job: BatchJob) -> bool:
    return any(observation.is_live(pod) for pod in cluster_job.pods_of(job))


def remove_workers(job: BatchJob) -> None:
    """Delete the ScaledJob with its Jobs and their pods, which have time to give back messages."""
    _delete(job, *_WORKERS)


def remove(job: BatchJob) -> None:
    """Remove the objects that the pods needed until they ended."""
    workloads.retire(
        cluster_id=job.cluster_id, namespace=job.team.slug, name=cluster_job.name_of(job)
    )
    pods = BatchSettings.from_json(job.pods)
    has_authentication = queues.kind_of(job.input).authentication(pods) is not None
    for api_version, kind in _OTHERS if has_authentication else _OTHERS[1:]:
        _delete(job, api_version, kind)
    cluster_job.remove_dependent_objects(job)


def columns_of(job: BatchJob) -> list[csv_files.Column] | None:
    """Return the columns of messages that hold an input in each field. None if the inputs are not known, or JSON
    cannot hold one.
    """
    signature = signatures.from_json(job.version.signature)
    try:
        return csv_files.columns_of_inputs(signature, version=job.version.label)
    except Rejected:
        return None


def _read_queue_state(job: BatchJob) -> QueueState | None:
    """Return the place of workers that Kueue has not admitted. None if there are none, or the job names no queue."""
    if not BatchSettings.from_json(job.pods).queue:
        return None
    jobs = objects.list_objects(
        cluster_id=job.cluster_id,
        api_version=job_objects.API_VERSION,
        kind=job_objects.KIND,
        namespace=job.team.slug,
        labels={scaled_job.OWNER_LABEL: cluster_job.name_of(job)},
    )
    return cluster_job.read_queue_state(job, jobs)


def _create(job: BatchJob) -> None:
    pods = BatchSettings.from_json(job.pods)
    context = cluster_job.context_of(job)
    served = cluster_job.build_served_revision(job, pods)
    cluster_job.register(job)
    until = job.deadline_at or clock.now()
    manifests = scaled_job.objects_of(
        context,
        served,
        pods,
        queues.read(job.input, job.output, pods),
        name=cluster_job.name_of(job),
        columns=columns_of(job),
        until=until.timestamp(),
    )
    objects.apply(cluster_id=job.cluster_id, manifests=manifests)


def _delete(job: BatchJob, api_version: str, kind: str) -> None:
    objects.delete_own(
        cluster_id=job.cluster_id,
        api_version=api_version,
        kind=kind,
        namespace=job.team.slug,
        name=cluster_job.name_of(job),
    )
