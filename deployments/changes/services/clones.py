"""A new deployment with the settings of another one of the team."""

from __future__ import annotations

from typing import Any

from deployments.manifests.selectors import rendering
from deployments.models import Deployment, Revision
from deployments.preflight.selectors import addresses
from deployments.serving.selectors import deployments
from deployments.spec.domain import kubernetes_names
from portal.accounts.models import Team, User
from portal.core.errors import Conflict


def request_body(*, actor: User, team: Team, name: str) -> dict[str, Any]:
    """Build the request of a deployment like the team's deployment of that name, under a free name. Raises NotFound
    for one that the actor cannot see, Conflict for one without a revision.
    """
    deployment = deployments.get_visible(actor=actor, team_slug=team.slug, name=name)
    revision = _find_revision(deployment)
    taken = addresses.taken_names(cluster_id=deployment.cluster_id, namespace=team.slug)
    spec = rendering.spec_of(revision).to_json()
    return {
        "version_id": revision.version_id,
        "cluster_id": deployment.cluster_id,
        "name": kubernetes_names.suggest(deployment.name, namespace=team.slug, taken=taken),
        "environment": deployment.environment,
        "spec": {name: value for name, value in spec.items() if name not in ("image", "schema")},
    }


def _find_revision(deployment: Deployment) -> Revision:
    """Return the revision that serves, else the newest."""
    revision = deployment.stable_revision
    if revision is None:
        rows = Revision.objects.filter(deployment=deployment).select_related("deployment")
        revision = rows.order_by("-number").first()
    if revision is None:
        raise Conflict(f"{deployment} has no settings to copy.", code="nothing_to_copy")
    return revision
