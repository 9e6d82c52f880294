"""The effects of reconciliation on a cluster. Each is idempotent."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from deployments.delivery.domain import owned_kinds
from deployments.delivery.services import (
    bucket_files,
    caller_keys,
    git_backend,
    observe,
    team_address,
)
from deployments.delivery.services.caller_keys import PolicyRefusal
from deployments.delivery.services.git_backend import CommitResult
from deployments.delivery.services.observe import Workload
from deployments.manifests.domain import http_route, network, resource_limits
from deployments.manifests.domain import namespace as manifest_namespace
from deployments.manifests.domain.access import caller_keys as access_keys
from deployments.manifests.domain.metadata import Manifest, ManifestContext, is_of_revision
from deployments.manifests.selectors.rendered import RenderedDeployment, RenderedRevision
from deployments.models import Deployment, Revision
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from fleet.kube.services.objects import Group
from fleet.observation.services import workloads
from fleet.observation.services.workloads import Registration

Result = list[dict[str, Any]] | ClusterError | CommitResult


@dataclass(frozen=True, slots=True)
class Push:
    """A revision to be written. `is_known`: the cluster has its workload already, so the portal
    owns it and takes back the fields that others changed.
    """

    revision: Revision
    rendered: RenderedRevision
    context: ManifestContext
    is_known: bool = False

    @property
    def deployment(self) -> Deployment:
        return self.revision.deployment


def push_revisions(pushes: Sequence[Push]) -> list[Result]:
    """Push revisions of one cluster. Each has its own result: the objects as the cluster holds
    them.

    The files that pods will read are compared with what was approved, and written, before that.
    """
    errors = bucket_files.lay_out_all([(push.revision, push.rendered) for push in pushes])
    ready = [push for push, error in zip(pushes, errors, strict=True) if error is None]
    results = iter(_push(ready) if ready else [])
    return [error or next(results) for error in errors]


def _push(pushes: Sequence[Push]) -> list[Result]:
    """Register with fleet first: a pod that is never metered would be a cost without an owner."""
    cluster_id = pushes[0].deployment.cluster_id
    registrations = [_registration(push) for push in pushes]
    workloads.register_many(cluster_id=cluster_id, registrations=registrations)
    backends = git_backend.backends_for([push.deployment for push in pushes])
    direct = [push for push in pushes if push.deployment.pk not in backends]
    results = iter(_apply(cluster_id, direct) if direct else [])
    return [
        backends[push.deployment.pk].push_revision(push.revision, push.rendered.manifests)
        if push.deployment.pk in backends
        else next(results)
        for push in pushes
    ]


def _apply(cluster_id: int, pushes: Sequence[Push]) -> list[Result]:
    refused = _push_shared(cluster_id, pushes)
    groups = [
        Group(
            [manifest for manifest in push.rendered.manifests if is_of_revision(manifest)],
            force=push.is_known,
        )
        for push in pushes
        if push.deployment.namespace not in refused
    ]
    results = iter(objects.apply_groups(cluster_id=cluster_id, groups=groups))
    return [refused.get(push.deployment.namespace) or next(results) for push in pushes]


def _push_shared(cluster_id: int, pushes: Sequence[Push]) -> dict[str, ClusterError]:
    """Apply the shared objects of each namespace once. Returns the refusals by namespace."""
    by_namespace: dict[str, list[Manifest]] = {}
    known: set[str] = set()
    for push in pushes:
        namespace = push.deployment.namespace
        shared = by_namespace.setdefault(namespace, [])
        shared += [manifest for manifest in _shared(push) if manifest not in shared]
        if push.is_known:
            known.add(namespace)
    groups = [Group(manifests, force=name in known) for name, manifests in by_namespace.items()]
    results = objects.apply_groups(cluster_id=cluster_id, groups=groups)
    return {
        namespace: result
        for namespace, result in zip(by_namespace, results, strict=True)
        if isinstance(result, ClusterError)
    }


def _shared(push: Push) -> list[Manifest]:
    """Return the namespace's objects.

    Not all of them are part of what is approved: the limits of the team's quota and, on a local cluster, the
    portal's own S3 keys, where elsewhere pods read as their role.
    """
    shared = [manifest for manifest in push.rendered.manifests if not is_of_revision(manifest)]
    context = push.context
    added = resource_limits.limit_namespace(context, quota_gpus=push.deployment.team.quota_gpus)
    if context.is_local_cluster:
        key_id, secret_key = settings.SLIPWAY_LOCAL_S3_KEYS
        added.append(
            manifest_namespace.s3_secret(
                context, access_key_id=key_id, secret_access_key=secret_key
            )
        )
    is_namespace = [manifest["kind"] == "Namespace" for manifest in shared]
    after = is_namespace.index(True) + 1
    return [*shared[:after], *added, *shared[after:]]


def _registration(push: Push) -> Registration:
    deployment, revision, version = push.deployment, push.revision, push.rendered.version
    models = [version.model.name, *(other.model.name for other in push.rendered.additional)]
    return Registration(
        team=deployment.team,
        namespace=deployment.namespace,
        name=revision.workload_name,
        labels={
            "deployment": deployment.name,
            "revision": f"r{revision.number}",
            # The GPU and its cost belong to all models of the process together.
            "model": " + ".join(models),
            "version": version.label,
        },
        triton_models=models,
        since=revision.created_at,
        metrics_port=network.metrics_port(push.rendered.served),
        metrics_path=network.metrics_path(push.rendered.served),
    )


@dataclass(frozen=True, slots=True)
class RoutePush:
    """The result of a push of the route. `refusal` says why its policies are not as desired, although the route is."""

    result: Result
    refusal: PolicyRefusal | None = None


def push_routes(
    rendered: Sequence[RenderedDeployment], *, closed: Collection[int]
) -> list[RoutePush]:
    """Push routes of one cluster. Forced: the route is the portal's, and an abort must win over the
    edits of others.

    A refused policy holds back only a route that would be open without it: where the live route is `closed`, the
    policies that it was written with hold, and a limit decides about nobody's access.
    """
    backends = git_backend.backends_for([item.deployment for item in rendered])
    refusals = caller_keys.push(rendered, is_direct=lambda pk: pk not in backends)
    team_address.push(rendered)
    held = {
        pk: refusal.error
        for pk, refusal in refusals.items()
        if not refusal.is_limit and pk not in closed
    }
    results: dict[int, Result] = dict(held)
    direct = [item for item in rendered if item.deployment.pk not in {*backends, *held}]
    groups = [Group([_route_of(item, refusals)], force=True) for item in direct]
    cluster_id = rendered[0].deployment.cluster_id
    applied = objects.apply_groups(cluster_id=cluster_id, groups=groups) if groups else []
    results |= zip([item.deployment.pk for item in direct], applied, strict=True)
    for item in rendered:
        backend = backends.get(item.deployment.pk)
        if backend is not None and item.deployment.pk not in held:
            route = _route_of(item, refusals)
            results[item.deployment.pk] = backend.push_route([*item.caller_policies, route])
    pks = [item.deployment.pk for item in rendered]
    return [RoutePush(results[pk], None if pk in held else refusals.get(pk)) for pk in pks]


def _route_of(item: RenderedDeployment, refusals: Mapping[int, PolicyRefusal]) -> Manifest:
    """Return the route, marked if policies were refused, so that they are written again."""
    is_refused = item.deployment.pk in refusals
    return item.route_with(access_keys.UNWRITTEN) if is_refused else item.route


def delete_route(deployment: Deployment) -> CommitResult | None:
    """Delete the route, and its part of the team's address. None without Git: the next observation shows whether it
    is gone.
    """
    team_address.leave(deployment)
    backend = git_backend.backend_for(deployment)
    if backend is not None:
        return backend.remove_route()
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=http_route.API_VERSION,
        kind=http_route.KIND,
        namespace=deployment.namespace,
        name=deployment.name,
    )
    return None


def delete_revision(deployment: Deployment, workload: Workload) -> CommitResult | None:
    """Delete the workload last: while it exists, the next pass sees that objects remain."""
    backend = git_backend.backend_for(deployment)
    if backend is not None:
        committed = backend.remove_revision(workload.number)
        if not committed.problem:
            _retire(deployment, workload.name)
        return committed
    for item in observe.list_of_revision(deployment, workload.number):
        delete(deployment, item)
    delete(deployment, workload.object)
    _retire(deployment, workload.name)
    return None


def delete(deployment: Deployment, item: Mapping[str, Any]) -> None:
    """Delete an object of the deployment. With its policy the keys of callers are deleted. Raises NotOwned for one
    of another installation.
    """
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version=item["apiVersion"],
        kind=item["kind"],
        namespace=item["metadata"].get("namespace", deployment.namespace),
        name=item["metadata"]["name"],
    )
    if (item["apiVersion"], item["kind"]) == owned_kinds.ACCESS_POLICY:
        caller_keys.delete(deployment)


def forget_revision(deployment: Deployment, revision: Revision) -> None:
    """Retire the workload of a revision of which the cluster accepted no object, so that there is nothing to meter."""
    _retire(deployment, revision.workload_name)


def _retire(deployment: Deployment, name: str) -> None:
    workloads.retire(cluster_id=deployment.cluster_id, namespace=deployment.namespace, name=name)
