"""The effects that reconciliation has on a cluster. Each may run twice and ends in the same place."""

from __future__ import annotations

from django.conf import settings

from deployments.domain import specs
from deployments.domain.manifests import kserve, parts, routes, team, triton
from deployments.domain.manifests.parts import Manifest
from deployments.models import Deployment, Revision
from deployments.selectors import plans
from deployments.services.observing import Workload
from fleet.services import objects, workloads


def push_revision(revision: Revision) -> None:
    """Registered with fleet first: a pod that is never metered would be a cost without an owner."""
    deployment = revision.deployment
    version = revision.version
    workloads.register(
        cluster_id=deployment.cluster_id,
        team=deployment.team,
        namespace=deployment.namespace,
        name=revision.workload_name,
        labels={
            "deployment": deployment.name,
            "revision": f"r{revision.number}",
            "model": version.model.name,
            "version": version.label,
        },
        triton_model=version.model.name,
    )
    objects.apply(cluster_id=deployment.cluster_id, manifests=_with_credentials(revision))


def push_route(deployment: Deployment) -> None:
    """Forced: the route is the portal's, and an abort must win over whoever edited it."""
    objects.apply(
        cluster_id=deployment.cluster_id, manifests=[plans.route_of(deployment)], force=True
    )


def delete_route(deployment: Deployment) -> None:
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=routes.API_VERSION,
        kind=routes.KIND,
        namespace=deployment.namespace,
        name=deployment.name,
    )


def delete_revision(deployment: Deployment, workload: Workload) -> None:
    """The workload last: while it is there, a look finds that something is left to remove."""
    if workload.engine == specs.TRITON:
        for api_version, kind in (("policy/v1", "PodDisruptionBudget"), ("v1", "Service")):
            _delete(deployment, api_version, kind, workload.name)
        _delete(deployment, triton.API_VERSION, triton.KIND, workload.name)
    else:
        _delete(deployment, kserve.API_VERSION, kserve.KIND, workload.name)
    _retire(deployment, workload.name)


def forget_revision(deployment: Deployment, revision: Revision) -> None:
    """The cluster took none of it, so there is nothing to meter."""
    _retire(deployment, revision.workload_name)


def _retire(deployment: Deployment, name: str) -> None:
    workloads.retire(cluster_id=deployment.cluster_id, namespace=deployment.namespace, name=name)


def _delete(deployment: Deployment, api_version: str, kind: str, name: str) -> None:
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=api_version,
        kind=kind,
        namespace=deployment.namespace,
        name=name,
    )


def _with_credentials(revision: Revision) -> list[Manifest]:
    """On a local cluster pods read the bucket with the portal's own keys; elsewhere as their role."""
    manifests = plans.manifests_of(revision)
    place = plans.place_of(revision.deployment)
    if not place.is_local_cluster:
        return manifests
    access_key_id, secret_access_key = settings.SLIPWAY_LOCAL_S3_KEYS
    secret = team.s3_secret(place, access_key_id=access_key_id, secret_access_key=secret_access_key)
    is_namespace = [manifest["kind"] == "Namespace" for manifest in manifests]
    after = is_namespace.index(True) + 1
    return [*manifests[:after], secret, *manifests[after:]]


def main_digest(revision: Revision) -> str:
    """The digest annotation of the revision's workload as it should be."""
    own = [m for m in plans.manifests_of(revision) if m["kind"] in (kserve.KIND, triton.KIND)]
    return str(own[0]["metadata"]["annotations"][parts.DIGEST_ANNOTATION])
