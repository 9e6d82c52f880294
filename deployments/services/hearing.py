"""Hear from fleet that something of a deployment changed on a cluster, and look at it soon."""

from __future__ import annotations

from collections.abc import Mapping

from deployments.domain.manifests.parts import DEPLOYMENT_ID_LABEL
from deployments.models import Deployment
from portal.core import clock
from portal.core.wakeups import wake


def on_change(cluster_id: int, labels: Mapping[str, str]) -> None:
    """A hint: labels can be written by anyone, so only a live deployment of that cluster counts."""
    label = labels.get(DEPLOYMENT_ID_LABEL, "")
    if not label.isdecimal() or len(label) > 18:
        return
    rows = Deployment.objects.filter(pk=int(label), cluster_id=cluster_id, is_retired=False)
    if rows.exclude(stable_revision=None).update(next_check_at=clock.now()):
        wake("deployments.reconcile_deployment", int(label))
