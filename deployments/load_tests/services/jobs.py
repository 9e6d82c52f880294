"""Load tests as Jobs: each call takes one step on the cluster, and can be repeated."""

from __future__ import annotations

import logging
import secrets
from datetime import timedelta
from typing import Any, Final

from django.conf import settings

from deployments.access.domain import catalogue
from deployments.load_tests.domain import job, load_plan, observation
from deployments.load_tests.domain.choice import PodChoice
from deployments.load_tests.selectors import places
from deployments.manifests.domain import namespace, network, resource_limits
from deployments.manifests.domain.metadata import Manifest, ManifestContext, ServedRevision
from deployments.manifests.selectors import rendering
from deployments.models import LoadTestRun, ModelVersion
from deployments.registry.domain import signatures
from deployments.registry.domain.forests import comparison
from deployments.registry.domain.load_tests.examined_version import ExaminedVersion
from deployments.registry.domain.load_tests.results import LoadTest
from deployments.spec.domain.engines import TRITON
from deployments.spec.domain.serving_spec import Network, ServingSpec
from fleet.clusters.selectors import clusters
from fleet.kube.domain.errors import ClusterError, NotOwned, ObjectInvalid, Refused
from fleet.kube.services import objects
from fleet.observation.services import workloads
from portal.core import clock

logger = logging.getLogger(__name__)
# After the Job's own limit, for a cluster that is away.
_GRACE: Final = timedelta(minutes=5)
# Within it, a Job that is not there was never created: it is not removed so soon.
_MAY_BE_UNMADE: Final = timedelta(seconds=job.TTL_SECONDS)
_ANY_INSTANCE_TYPE: Final = "any"


class Jobs:
    """The Runner of deployments.registry.services.examination.cluster_load_test."""

    def place_of(self, version: ModelVersion) -> str:
        place = places.place_of(version.model.team_id)
        return "" if place is None else place.cluster.name

    def begin(self, version: ModelVersion, examined: ExaminedVersion) -> None:
        place, at = places.place_of(version.model.team_id), clock.now()
        if place is None:
            # Chosen no longer since a moment ago: the next pass examines it again.
            return
        limit = timedelta(minutes=places.pod_of(place).minutes) + _GRACE
        LoadTestRun.objects.create(
            version=version,
            cluster=place.cluster,
            namespace=version.team.slug,
            name=job.name_of(version.pk, secrets.token_hex(3)),
            pod=place.pod,
            until=version.deadline_at,
            columns=examined.to_json(),
            began_at=at,
            deadline_at=at + limit,
        )

    def advance(self, run: LoadTestRun) -> LoadTest | str:
        try:
            step = _advance(run)
        except (NotOwned, Refused, ObjectInvalid) as error:
            step = observation.report_refused(error.message)
        except ClusterError as error:
            logger.warning("load test of version %s: %s", run.version_id, error.message)
            step = f"the cluster does not answer: {error.message}"
        if isinstance(step, str) and clock.now() >= run.deadline_at:
            step = observation.unreachable(step)
        return step if isinstance(step, str) else _on(run, step)

    def remove(self, run: LoadTestRun) -> bool:
        workloads.retire(cluster_id=run.cluster_id, namespace=run.namespace, name=run.name)
        try:
            objects.delete_own(
                cluster_id=run.cluster_id,
                api_version=job.API_VERSION,
                kind=job.KIND,
                namespace=run.namespace,
                name=run.name,
            )
        except ClusterError as error:
            logger.warning("Job %s was not removed: %s", run.name, error.message)
            return False
        return True


def _on(run: LoadTestRun, result: LoadTest) -> LoadTest:
    return LoadTest(**{**result.to_json(), "outcome": result.outcome, "cluster": run.cluster.name})


def _advance(run: LoadTestRun) -> LoadTest | str:
    made = objects.get(
        cluster_id=run.cluster_id,
        api_version=job.API_VERSION,
        kind=job.KIND,
        namespace=run.namespace,
        name=run.name,
    )
    if made is None:
        at = clock.now()
        if run.applied_at is not None and at - run.applied_at > _MAY_BE_UNMADE:
            return observation.report_gone(run.detail)
        if run.applied_at is None:
            LoadTestRun.objects.filter(pk=run.pk).update(applied_at=at)
        _apply(run)
        return ""
    pods = _pods(run)
    events = [] if pods else _events(run)
    minutes = PodChoice.from_json(run.pod).minutes
    return observation.outcome_of(made, pods, events, minutes=minutes, last=run.detail)


def _pods(run: LoadTestRun) -> list[dict[str, Any]]:
    return objects.list_objects(
        cluster_id=run.cluster_id,
        api_version="v1",
        kind="Pod",
        namespace=run.namespace,
        labels={network.LOAD_TEST_LABEL: run.name},
    )


def _events(run: LoadTestRun) -> list[dict[str, Any]]:
    events = objects.list_objects(
        cluster_id=run.cluster_id,
        api_version="v1",
        kind="Event",
        namespace=run.namespace,
        labels={},
    )
    return [
        event for event in events if (event.get("involvedObject") or {}).get("name") == run.name
    ]


def _apply(run: LoadTestRun) -> None:
    """Register with fleet first: the pod's GPU has an owner."""
    version = _examined(run)
    sample = ExaminedVersion.from_json(run.columns).sample
    choice = PodChoice.from_json(run.pod)
    context = _context(run)
    served = _served(version, choice)
    plan = load_plan.to_text(
        signatures.from_json(version.signature),
        model=version.model.name,
        seconds=choice.minutes * 60,
        is_on_cpu=not choice.gpu_resource,
        sample=comparison.from_json(sample) if sample else None,
    )
    workloads.register(
        cluster_id=run.cluster_id,
        team=version.team,
        namespace=run.namespace,
        name=run.name,
        labels={"model": version.model.name, "version": version.label},
        triton_models=[],
    )
    shared = _shared(context, version.team.quota_gpus)
    objects.apply(cluster_id=run.cluster_id, manifests=shared)
    made = job.job(context, served, choice, name=run.name, plan=plan)
    objects.apply(cluster_id=run.cluster_id, manifests=[made])


def _examined(run: LoadTestRun) -> ModelVersion:
    """Return the version with the values that it will have when it is ready. Do not save it."""
    version = run.version
    for name, value in ExaminedVersion.from_json(run.columns).columns().items():
        setattr(version, name, value)
    return version


def _context(run: LoadTestRun) -> ManifestContext:
    cluster = clusters.get_cluster(run.cluster_id)
    return rendering.context_for(
        team=run.namespace,
        name=run.name,
        deployment_id=0,
        cluster=cluster,
        policy=cluster.serving,
        capabilities=cluster.capabilities,
    )


def _served(version: ModelVersion, choice: PodChoice) -> ServedRevision:
    # A job has no address.
    spec = ServingSpec(
        engine=TRITON,
        instance_type=choice.instance_type or _ANY_INSTANCE_TYPE,
        network=Network(access=catalogue.UNCHECKED.name),
    )
    files = rendering.files_for(version=version, spec=spec, additional=[])
    return rendering.served_revision_for(
        number=1, version=version, spec=spec, additional=[], files=files
    )


def _shared(context: ManifestContext, quota_gpus: int) -> list[Manifest]:
    """Return the shared objects as deliveries write them. The owner is the same, so nothing is taken away."""
    first, *others = job.build_shared(context)
    added = resource_limits.limit_namespace(context, quota_gpus=quota_gpus)
    if context.is_local_cluster:
        key_id, key = settings.SLIPWAY_LOCAL_S3_KEYS
        added.append(namespace.s3_secret(context, access_key_id=key_id, secret_access_key=key))
    return [first, *added, *others]
