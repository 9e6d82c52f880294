"""The effects that reconciliation has on a cluster. Each may run twice and ends in the same place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from deployments.delivery.services import bucket_files, git_backend, observe
from deployments.delivery.services.git_backend import CommitResult
from deployments.delivery.services.observe import Workload
from deployments.manifests.domain import http_route, metadata, resource_limits
from deployments.manifests.domain import namespace as manifest_namespace
from deployments.manifests.domain.metadata import Manifest
from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Revision
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from fleet.kube.services.objects import Group
from fleet.observation.services import workloads
from fleet.observation.services.workloads import Registration

Result = list[dict[str, Any]] | ClusterError | CommitResult


@dataclass(frozen=True, slots=True)
class Push:
    """A revision to be written. `is_known`: the cluster has it already, so it is the portal's own
    and what others changed in it is taken back.
    """

    revision: Revision
    manifests: Sequence[Manifest]
    is_known: bool = False


def push_revisions(pushes: Sequence[Push]) -> list[Result]:
    """All of one cluster, each with its own result: the objects as the cluster holds them now.

    What pods will ask the bucket for is compared with what was approved, and laid out, before.
    """
    unlaid = bucket_files.lay_out_all([push.revision for push in pushes])
    laid = [push for push, error in zip(pushes, unlaid, strict=True) if error is None]
    done = iter(_push(laid) if laid else [])
    return [error or next(done) for error in unlaid]


def _push(pushes: Sequence[Push]) -> list[Result]:
    """Registered with fleet first: a pod that is never metered would be a cost without an owner."""
    cluster_id = pushes[0].revision.deployment.cluster_id
    registrations = [_registration(push.revision) for push in pushes]
    workloads.register_many(cluster_id=cluster_id, registrations=registrations)
    doors = git_backend.backends_for([push.revision.deployment for push in pushes])
    direct = [push for push in pushes if push.revision.deployment_id not in doors]
    done = iter(_apply(cluster_id, direct) if direct else [])
    return [
        doors[push.revision.deployment_id].push_revision(push.revision, push.manifests)
        if push.revision.deployment_id in doors
        else next(done)
        for push in pushes
    ]


def _apply(cluster_id: int, pushes: Sequence[Push]) -> list[Result]:
    refused = _push_shared(cluster_id, pushes)
    own = [
        Group([one for one in push.manifests if _is_own(one)], force=push.is_known)
        for push in pushes
        if push.revision.deployment.namespace not in refused
    ]
    done = iter(objects.apply_groups(cluster_id=cluster_id, groups=own))
    return [refused.get(push.revision.deployment.namespace) or next(done) for push in pushes]


def _push_shared(cluster_id: int, pushes: Sequence[Push]) -> dict[str, ClusterError]:
    """What a namespace holds once, once however many revisions need it. Returns the refusals."""
    wanted: dict[str, list[Manifest]] = {}
    known: set[str] = set()
    for push in pushes:
        namespace = push.revision.deployment.namespace
        found = wanted.setdefault(namespace, [])
        found += [one for one in _shared(push) if one not in found]
        if push.is_known:
            known.add(namespace)
    groups = [Group(manifests, force=name in known) for name, manifests in wanted.items()]
    done = objects.apply_groups(cluster_id=cluster_id, groups=groups)
    return {
        namespace: result
        for namespace, result in zip(wanted, done, strict=True)
        if isinstance(result, ClusterError)
    }


def _shared(push: Push) -> list[Manifest]:
    return [one for one in _with_namespace(push) if not _is_own(one)]


def _is_own(manifest: Manifest) -> bool:
    return metadata.REVISION_LABEL in manifest["metadata"].get("labels", {})


def _registration(revision: Revision) -> Registration:
    deployment, version = revision.deployment, revision.version
    models = [version.model.name, *(one.model for one in rendering.spec_of(revision).packed)]
    return Registration(
        team=deployment.team,
        namespace=deployment.namespace,
        name=revision.workload_name,
        labels={
            "deployment": deployment.name,
            "revision": f"r{revision.number}",
            # The GPU and its dollars belong to all models of the process together.
            "model": " + ".join(models),
            "version": version.label,
        },
        triton_models=models,
    )


def push_routes(deployments: Sequence[Deployment]) -> list[Result]:
    """All of one cluster. Forced: the route is the portal's, and an abort must win over whoever
    edited it.
    """
    doors = git_backend.backends_for(deployments)
    direct = [deployment for deployment in deployments if deployment.pk not in doors]
    groups = [Group([rendering.route_of(deployment)], force=True) for deployment in direct]
    cluster_id = deployments[0].cluster_id
    done = iter(objects.apply_groups(cluster_id=cluster_id, groups=groups) if groups else [])
    return [
        doors[deployment.pk].push_route() if deployment.pk in doors else next(done)
        for deployment in deployments
    ]


def delete_route(deployment: Deployment) -> CommitResult | None:
    """None: the cluster was asked, and it shows."""
    door = git_backend.backend_for(deployment)
    if door is not None:
        return door.remove_route()
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=http_route.API_VERSION,
        kind=http_route.KIND,
        namespace=deployment.namespace,
        name=deployment.name,
    )
    return None


def delete_revision(deployment: Deployment, workload: Workload) -> CommitResult | None:
    """The workload last: while it is there, a look finds that something is left to remove."""
    door = git_backend.backend_for(deployment)
    if door is not None:
        handed = door.remove_revision(workload.number)
        if not handed.problem:
            _retire(deployment, workload.name)
        return handed
    for item in observe.list_of_revision(deployment, workload.number):
        delete(deployment, item)
    delete(deployment, workload.object)
    _retire(deployment, workload.name)
    return None


def delete(deployment: Deployment, item: Mapping[str, Any]) -> None:
    """Only what carries the deployment's label may come here."""
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=item["apiVersion"],
        kind=item["kind"],
        namespace=deployment.namespace,
        name=item["metadata"]["name"],
    )


def settle(wanted: Mapping[int, tuple[Deployment, Callable[[], Sequence[Manifest]]]]) -> None:
    """The cluster is as wanted; Git is to say the same where a team delivers through it."""
    doors = git_backend.backends_for([deployment for deployment, _ in wanted.values()])
    for pk, door in doors.items():
        door.settle(wanted[pk][1]())


def forget_revision(deployment: Deployment, revision: Revision) -> None:
    """The cluster took none of it, so there is nothing to meter."""
    _retire(deployment, revision.workload_name)


def _retire(deployment: Deployment, name: str) -> None:
    workloads.retire(cluster_id=deployment.cluster_id, namespace=deployment.namespace, name=name)


def _with_namespace(push: Push) -> list[Manifest]:
    """With what the namespace gets beside what was approved: the limits of the team's quota and, on
    a local cluster, the portal's own keys, where others read the bucket as their role.
    """
    manifests, deployment = list(push.manifests), push.revision.deployment
    context = rendering.context_of(deployment)
    added = resource_limits.of_namespace(context, quota_gpus=deployment.team.quota_gpus)
    if context.is_local_cluster:
        key_id, secret_key = settings.SLIPWAY_LOCAL_S3_KEYS
        added.append(
            manifest_namespace.s3_secret(
                context, access_key_id=key_id, secret_access_key=secret_key
            )
        )
    is_namespace = [manifest["kind"] == "Namespace" for manifest in manifests]
    after = is_namespace.index(True) + 1
    return [*manifests[:after], *added, *manifests[after:]]


def main_digest(manifests: Sequence[Manifest]) -> str:
    """The digest annotation of the revision's workload as it should be."""
    found = (one["metadata"].get("annotations", {}) for one in manifests)
    return next(
        str(one[metadata.DIGEST_ANNOTATION]) for one in found if metadata.DIGEST_ANNOTATION in one
    )
