"""Observe the deployments of a pass, those apart whose namespace the portal may not read."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from deployments.delivery.services.observe import DeploymentObservation, observe
from deployments.models import Deployment
from fleet.kube.domain.errors import ClusterError, NotAllowed


def observe_all(
    deployments: Sequence[Deployment],
) -> tuple[dict[int, DeploymentObservation], dict[int, ClusterError]]:
    """Return observations, and refusals, by primary key. Raises other ClusterErrors."""
    try:
        return observe(deployments), {}
    except NotAllowed:
        # A role may be missing in one namespace only.
        by_namespace: dict[str, list[Deployment]] = defaultdict(list)
        for deployment in deployments:
            by_namespace[deployment.namespace].append(deployment)
    observations: dict[int, DeploymentObservation] = {}
    refusals: dict[int, ClusterError] = {}
    for some in by_namespace.values():
        try:
            observations |= observe(some)
        except NotAllowed as error:
            refusals |= {deployment.pk: error for deployment in some}
    return observations, refusals
