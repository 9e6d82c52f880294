"""The Job of one attempt on its cluster: applied, observed and removed. Each call can be repeated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from django.conf import settings

from deployments.batch.domain import job as objects_of
from deployments.batch.domain import observation
from deployments.batch.domain.observation import ObservedJob
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import GRACE
from deployments.batch.selectors import jobs
from deployments.batch.services import links
from deployments.manifests.domain import namespace, network, resource_limits
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.manifests.selectors import rendering
from deployments.models import BatchJob
from deployments.serving.domain import queue_state
from deployments.serving.domain.queue_state import QueueState
from deployments.serving.services import queue_lists
from fleet.clusters.selectors import clusters
from fleet.kube.services import objects
from fleet.observation.services import workloads
from portal.core import clock

_PROLONG_EVERY: Final = timedelta(minutes=1)
_SECRET: Final = ("v1", "Secret")


def apply_links(job: BatchJob, urls: Mapping[int, str]) -> None:
    """Apply the Secret with the links, and the objects that the pods need beside it."""
    context = context_of(job)
    secret = objects_of.links(context, name=name_of(job), urls=urls)
    objects.apply(cluster_id=job.cluster_id, manifests=[*_shared(context, job), secret])


def ensure(job: BatchJob) -> ObservedJob:
    """Create the Job if it is missing, and return what it does."""
    made = _get(job)
    if made is None:
        _create(job)
        return ObservedJob("")
    if waits := read_queue_state(job, [made]):
        return ObservedJob(waits.message, queue=waits)
    pods = pods_of(job)
    events = [] if pods else _events(job)
    return observation.observe(made, pods, events)


def is_queued(job: BatchJob) -> bool:
    """Whether Kueue has not admitted the Job. Reads the cluster only if the job names a queue."""
    if not BatchSettings.from_json(job.pods).queue:
        return False
    made = _get(job)
    return made is not None and bool(made["spec"].get("suspend"))


def _get(job: BatchJob) -> dict[str, Any] | None:
    return objects.get(
        cluster_id=job.cluster_id,
        api_version=objects_of.API_VERSION,
        kind=objects_of.KIND,
        namespace=job.team.slug,
        name=name_of(job),
    )


def read_queue_state(job: BatchJob, made: Sequence[Mapping[str, Any]]) -> QueueState | None:
    """Return the place of Jobs that Kueue has not admitted. None if all are admitted, or the job names no queue."""
    queue = BatchSettings.from_json(job.pods).queue
    if not queue or not queue_state.list_suspended(made):
        return None
    kueue = clusters.get_cluster(job.cluster_id).capabilities.kueue
    lists = queue_lists.read(job.cluster_id, kueue, namespace=job.team.slug, queues=[queue])
    state = queue_state.read_job_queue(queue, made, lists.workloads, lists.positions.get(queue))
    return None if state is None else replace(state, why=lists.problem or state.why)


def remove(job: BatchJob) -> None:
    workloads.retire(cluster_id=job.cluster_id, namespace=job.team.slug, name=name_of(job))
    kinds = ((objects_of.API_VERSION, objects_of.KIND), _SECRET)
    for api_version, kind in kinds:
        objects.delete_own(
            cluster_id=job.cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=job.team.slug,
            name=name_of(job),
        )
    remove_dependent_objects(job)


def remove_dependent_objects(job: BatchJob) -> None:
    """Remove what the placement of the workers needed, once no pod is to be created."""
    labels = {network.BATCH_LABEL: name_of(job)}
    for api_version, kind in objects_of.dependent_kinds(BatchSettings.from_json(job.pods)):
        for made in _list(job, kind, labels, api_version=api_version):
            objects.delete_own(
                cluster_id=job.cluster_id,
                api_version=api_version,
                kind=kind,
                namespace=job.team.slug,
                name=made["metadata"]["name"],
            )


def name_of(job: BatchJob) -> str:
    return objects_of.name_of(job.pk, job.attempt)


def pods_of(job: BatchJob) -> list[dict[str, Any]]:
    return _list(job, "Pod", {network.BATCH_LABEL: name_of(job)})


def register(job: BatchJob) -> None:
    """Register the workers with the fleet before there are pods, so that their GPUs have an owner."""
    workloads.register(
        cluster_id=job.cluster_id,
        team=job.team,
        namespace=job.team.slug,
        name=name_of(job),
        labels={
            "deployment": jobs.label_of(job),
            "model": f"{job.team.slug}/{job.version.model.name}",
            "version": job.version.label,
        },
        triton_models=[job.version.model.name],
        ends_at=job.deadline_at,
    )


def prolong(job: BatchJob) -> datetime:
    """Extend the deadline to the whole time limit from now: time spent waiting in a queue does not count."""
    deadline = clock.now() + BatchSettings.from_json(job.pods).time_limit + GRACE
    if job.deadline_at is None or deadline - job.deadline_at >= _PROLONG_EVERY:
        job.deadline_at = deadline
        register(job)
    return job.deadline_at


def _create(job: BatchJob) -> None:
    pods = BatchSettings.from_json(job.pods)
    context = context_of(job)
    served = build_served_revision(job, pods)
    register(job)
    manifest = objects_of.job(
        context, served, pods, name=name_of(job), workers=links.workers_of(job)
    )
    labels = objects_of.labels_of(context, name_of(job))
    dependent = objects_of.dependent_objects(context, served, labels)
    objects.apply(cluster_id=job.cluster_id, manifests=[*dependent, manifest])


def _list(
    job: BatchJob, kind: str, labels: Mapping[str, str], *, api_version: str = "v1"
) -> list[dict[str, Any]]:
    return objects.list_objects(
        cluster_id=job.cluster_id,
        api_version=api_version,
        kind=kind,
        namespace=job.team.slug,
        labels=labels,
    )


def _events(job: BatchJob) -> list[dict[str, Any]]:
    return [
        event
        for event in _list(job, "Event", {})
        if (event.get("involvedObject") or {}).get("name") == name_of(job)
    ]


def context_of(job: BatchJob) -> ManifestContext:
    cluster = clusters.get_cluster(job.cluster_id)
    return rendering.context_for(
        team=job.team.slug,
        name=name_of(job),
        deployment_id=0,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )


def build_served_revision(job: BatchJob, pods: BatchSettings) -> ServedRevision:
    spec = objects_of.spec_of(pods)
    files = rendering.files_for(version=job.version, spec=spec, additional=[])
    return rendering.served_revision_for(
        number=1, version=job.version, spec=spec, additional=[], files=files
    )


def _shared(context: ManifestContext, job: BatchJob) -> list[Manifest]:
    """Return the shared objects as deliveries write them, with the same owner, so that nothing is removed."""
    first, *others = objects_of.build_shared(context)
    added = resource_limits.limit_namespace(context, quota_gpus=job.team.quota_gpus)
    if context.is_local_cluster:
        key_id, key = settings.SLIPWAY_LOCAL_S3_KEYS
        added.append(namespace.s3_secret(context, access_key_id=key_id, secret_access_key=key))
    return [first, *added, *others]
