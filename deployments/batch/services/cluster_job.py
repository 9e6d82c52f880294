"""The Job of one attempt on its cluster: applied, observed and removed. Each call can be repeated."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings

from deployments.batch.domain import job as objects_of
from deployments.batch.domain import observation
from deployments.batch.domain.observation import Observed
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.selectors import jobs
from deployments.batch.services import links
from deployments.manifests.domain import namespace, network, resource_limits
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.manifests.selectors import rendering
from deployments.models import BatchJob
from fleet.clusters.selectors import clusters
from fleet.kube.services import objects
from fleet.observation.services import workloads

_SECRET: Final = ("v1", "Secret")


def apply_links(job: BatchJob, urls: Mapping[int, str]) -> None:
    """With the objects that the pods need beside it."""
    context = _context(job)
    secret = objects_of.links(context, name=_name(job), urls=urls)
    objects.apply(cluster_id=job.cluster_id, manifests=[*_shared(context, job), secret])


def ensure(job: BatchJob) -> Observed:
    """Create the Job where it is missing, and say what it does."""
    made = objects.get(
        cluster_id=job.cluster_id,
        api_version=objects_of.API_VERSION,
        kind=objects_of.KIND,
        namespace=job.team.slug,
        name=_name(job),
    )
    if made is None:
        _create(job)
        return Observed("")
    pods = _list(job, "Pod", {network.BATCH_LABEL: _name(job)})
    events = [] if pods else _events(job)
    return observation.observe(made, pods, events)


def remove(job: BatchJob) -> None:
    workloads.retire(cluster_id=job.cluster_id, namespace=job.team.slug, name=_name(job))
    kinds = ((objects_of.API_VERSION, objects_of.KIND), _SECRET)
    for api_version, kind in kinds:
        objects.delete(
            cluster_id=job.cluster_id,
            api_version=api_version,
            kind=kind,
            namespace=job.team.slug,
            name=_name(job),
        )


def _name(job: BatchJob) -> str:
    return objects_of.name_of(job.pk, job.attempt)


def _create(job: BatchJob) -> None:
    """Register with fleet first: the pods' GPUs have an owner."""
    pods = BatchSettings.from_json(job.pods)
    context = _context(job)
    served = _served(job, pods)
    workloads.register(
        cluster_id=job.cluster_id,
        team=job.team,
        namespace=job.team.slug,
        name=_name(job),
        labels={
            "deployment": jobs.label_of(job),
            "model": f"{job.team.slug}/{job.version.model.name}",
            "version": job.version.label,
        },
        triton_models=[job.version.model.name],
        ends_at=job.deadline_at,
    )
    manifest = objects_of.job(context, served, pods, name=_name(job), workers=links.workers_of(job))
    objects.apply(cluster_id=job.cluster_id, manifests=[manifest])


def _list(job: BatchJob, kind: str, labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return objects.list_objects(
        cluster_id=job.cluster_id,
        api_version="v1",
        kind=kind,
        namespace=job.team.slug,
        labels=labels,
    )


def _events(job: BatchJob) -> list[dict[str, Any]]:
    return [
        event
        for event in _list(job, "Event", {})
        if (event.get("involvedObject") or {}).get("name") == _name(job)
    ]


def _context(job: BatchJob) -> ManifestContext:
    cluster = clusters.get_cluster(job.cluster_id)
    return rendering.context_for(
        team=job.team.slug,
        name=_name(job),
        deployment_id=0,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )


def _served(job: BatchJob, pods: BatchSettings) -> ServedRevision:
    spec = objects_of.spec_of(pods)
    files = rendering.files_for(version=job.version, spec=spec, additional=[])
    return rendering.served_revision_for(
        number=1, version=job.version, spec=spec, additional=[], files=files
    )


def _shared(context: ManifestContext, job: BatchJob) -> list[Manifest]:
    """As deliveries write it: the same owner, so nothing is taken away."""
    first, *others = objects_of.shared(context)
    added = resource_limits.of_namespace(context, quota_gpus=job.team.quota_gpus)
    if context.is_local_cluster:
        key_id, key = settings.SLIPWAY_LOCAL_S3_KEYS
        added.append(namespace.s3_secret(context, access_key_id=key_id, secret_access_key=key))
    return [first, *added, *others]
