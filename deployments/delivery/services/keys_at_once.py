"""Bring a person's change of keys to the gateway before any queue: a revoked key must not work for long."""

from __future__ import annotations

import logging

from django.db.models import Q

from deployments.delivery.services import caller_keys, git_backend
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.models import Deployment
from deployments.serving.selectors import revisions
from fleet.kube.domain.errors import ClusterError

logger = logging.getLogger(__name__)


def push(*, deployment_id: int) -> None:
    """Whoever holds the deployment's lease. Its next pass writes the same again, with the route, and is what
    counts: a failure here costs only time.
    """
    rows = Deployment.objects.select_related("team", "cluster").filter(
        is_retired=False, is_retiring=False, is_stopped=False, first_ready_at__isnull=False
    )
    row = rows.filter(pk=deployment_id).first()
    if row is None:
        return
    revisions.load_onto(row)
    item = RenderedDeployment(row)
    if not item.keys:
        return
    is_direct = git_backend.backend_for(row) is None
    try:
        caller_keys.push([item], is_direct=lambda _: is_direct)
        if Deployment.objects.filter(Q(is_retiring=True) | Q(is_retired=True), pk=row.pk).exists():
            # Its pass may have removed them a moment before.
            caller_keys.delete(row)
    except ClusterError as error:
        logger.warning("keys of %s were not pushed at once: %s", row, error.message)
