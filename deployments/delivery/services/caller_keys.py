"""Bring the keys of callers to the gateway, before the route that needs them.

The Secret goes to the cluster directly also where a team delivers through Git: keys are never committed. So do
policies in the Gateway's namespace, which is the platform's: a revoked key must not wait for a commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from deployments.callers.selectors import keys
from deployments.manifests.domain.access import caller_keys, istio_access, team_address
from deployments.manifests.domain.metadata import Manifest
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError, NotAllowed
from fleet.kube.services import objects
from fleet.kube.services.objects import Group


def push(
    rendered: Sequence[RenderedDeployment], *, is_direct: Callable[[int], bool]
) -> dict[int, ClusterError]:
    """Secrets and policies of those that need keys. Returns the refusals by deployment: without its policy
    a route must not be written.
    """
    for item in rendered:
        if item.context.verifies_tokens and not item.keys:
            # It would go on denying what was approved to be open.
            delete_gateway_access(item)
    closed = [item for item in rendered if item.caller_policies or item.gateway_policies]
    if not closed:
        return {}
    current = keys.of_deployments([item.deployment.pk for item in closed])
    groups = [
        Group(
            _manifests(
                item,
                current.get(item.deployment.pk, {}),
                is_direct=is_direct(item.deployment.pk),
            ),
            force=True,
        )
        for item in closed
    ]
    results = objects.apply_groups(cluster_id=closed[0].deployment.cluster_id, groups=groups)
    return {
        item.deployment.pk: result
        for item, result in zip(closed, results, strict=True)
        if isinstance(result, ClusterError)
    }


def _manifests(
    item: RenderedDeployment, keys_by_client: Mapping[str, str], *, is_direct: bool
) -> Sequence[Manifest]:
    if item.gateway_policies:
        return item.gateway_policies
    manifests: list[Manifest] = []
    if not item.token_issuer:
        manifests.append(caller_keys.secret(item.context, keys_by_client))
    if item.team_policies:
        manifests.append(team_address.secret(item.context, keys_by_client))
    # The policy for tokens lists the callers: one that is taken off must not wait for a commit.
    if is_direct or item.token_issuer:
        manifests += item.caller_policies
    return manifests


def delete_gateway_access(item: RenderedDeployment) -> None:
    """Raises ClusterError."""
    policy = istio_access.access(item.context, ())
    # Who may not delete it never wrote it.
    with suppress(NotAllowed):
        objects.delete(
            cluster_id=item.deployment.cluster_id,
            api_version=policy["apiVersion"],
            kind=policy["kind"],
            namespace=policy["metadata"]["namespace"],
            name=policy["metadata"]["name"],
        )


def delete(deployment: Deployment) -> None:
    for name in (
        caller_keys.secret_name(deployment.name),
        team_address.secret_name(deployment.name),
    ):
        objects.delete(
            cluster_id=deployment.cluster_id,
            api_version="v1",
            kind="Secret",
            namespace=deployment.namespace,
            name=name,
        )
