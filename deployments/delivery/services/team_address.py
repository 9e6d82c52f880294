"""Write what serves the team's address: a route of its own, with policies for all its deployments.

Each deployment's reconciliation writes its own Secret, so that a revoked key is never written back by another
one. What they share is written by each of them, and read from the rows again after it was: of two that write
at once the later one has the last word, and it is never older than the rows.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from deployments.callers.selectors import keys
from deployments.manifests.domain.access import team_address
from deployments.manifests.domain.metadata import ManifestContext
from deployments.manifests.selectors import rendering, team_members
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.manifests.selectors.team_members import Members
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError, NotAllowed
from fleet.kube.services import objects

logger = logging.getLogger(__name__)

_MOST_WRITES: Final = 3


def push(rendered: Sequence[RenderedDeployment]) -> None:
    """Write the addresses of the teams whose deployments serve there, or did. Call after the deployments' Secrets
    are written.
    """
    ever = team_members.ever([item.deployment.pk for item in rendered])
    concerned = [
        item for item in rendered if item.deployment.pk in ever and not item.context.verifies_tokens
    ]
    for item in {item.deployment.team_id: item for item in concerned}.values():
        _write(item.deployment, item.context)
    for item in concerned:
        if not item.team_policies:
            delete_secret(item.deployment)


def leave(deployment: Deployment) -> None:
    """Write the team's address without the deployment. Call it before its route is deleted."""
    if team_members.ever([deployment.pk]):
        _write(deployment, rendering.context_of(deployment))


def delete_secret(deployment: Deployment) -> None:
    objects.delete(
        cluster_id=deployment.cluster_id,
        api_version="v1",
        kind="Secret",
        namespace=deployment.namespace,
        name=team_address.secret_name(deployment.name),
    )


def _write(deployment: Deployment, context: ManifestContext) -> None:
    """Write the team's address until its members stay the same.

    A refusal is not raised: the deployments' own addresses do not depend on it, and an abort must reach their
    routes. The next comparison tries again.
    """
    written: Members | None = None
    try:
        for _ in range(_MOST_WRITES):
            members = team_members.list_members(
                team_id=deployment.team_id, cluster_id=deployment.cluster_id
            )
            if written is not None and members.all == written.all:
                return
            if members.all:
                _apply(deployment.cluster_id, context, members)
            else:
                _delete(deployment.cluster_id, context)
            written = members
    except ClusterError as error:
        logger.warning("team address of %s refused: %s", context.namespace, error.message)


def _apply(cluster_id: int, context: ManifestContext, members: Members) -> None:
    """Apply Secrets and policies before the route: a policy that names a missing Secret would serve nobody."""
    current = keys.read_current_keys([row.pk for row in members.unready])
    secrets = [
        team_address.secret(rendering.context_of(row), current.get(row.pk, {}))
        for row in members.unready
    ]
    *policies, route = team_address.manifests(context, members.all)
    objects.apply(cluster_id=cluster_id, manifests=[*secrets, *policies], force=True)
    objects.apply(cluster_id=cluster_id, manifests=[route], force=True)


def _delete(cluster_id: int, context: ManifestContext) -> None:
    """Delete the route first, because it would be open without its policies."""
    for manifest in reversed(team_address.manifests(context, ())):
        # Who may not delete it never wrote it.
        with suppress(NotAllowed):
            objects.delete(
                cluster_id=cluster_id,
                api_version=manifest["apiVersion"],
                kind=manifest["kind"],
                namespace=context.namespace,
                name=team_address.NAME,
            )
