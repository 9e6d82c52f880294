"""Bring the keys of callers to the gateway, before the route that needs them.

The Secret goes to the cluster directly also where a team delivers through Git: keys are never committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from deployments.callers.selectors import keys
from deployments.manifests.domain import caller_keys
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from fleet.kube.services.objects import Group


def push(
    rendered: Sequence[RenderedDeployment], *, is_direct: Callable[[int], bool]
) -> dict[int, ClusterError]:
    """Secrets and policies of those that need keys. Returns the refusals by deployment: without its policy
    a route must not be written.
    """
    closed = [item for item in rendered if item.caller_policies]
    if not closed:
        return {}
    current = keys.of_deployments([item.deployment.pk for item in closed])
    groups = []
    for item in closed:
        deployment_id = item.deployment.pk
        manifests = [caller_keys.secret(item.context, current.get(deployment_id, {}))]
        if is_direct(deployment_id):
            manifests += item.caller_policies
        groups.append(Group(manifests, force=True))
    results = objects.apply_groups(cluster_id=closed[0].deployment.cluster_id, groups=groups)
    return {
        item.deployment.pk: result
        for item, result in zip(closed, results, strict=True)
        if isinstance(result, ClusterError)
    }


def delete(deployment: Deployment) -> None:
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version="v1",
        kind="Secret",
        namespace=deployment.namespace,
        name=caller_keys.secret_name(deployment.name),
    )
