"""Hear from fleet that something of a deployment changed on a cluster, and look at it soon."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from deployments.domain.manifests.parts import DEPLOYMENT_ID_LABEL
from deployments.domain.states import RolloutPhase
from deployments.models import Deployment, Rollout
from portal.core import clock, leases
from portal.core.wakeups import wake


def on_change(cluster_id: int, labels: Mapping[str, str]) -> None:
    """A hint: labels can be written by anyone, so only a live deployment of that cluster counts."""
    label = labels.get(DEPLOYMENT_ID_LABEL, "")
    if not label.isdecimal() or len(label) > 18:
        return
    rows = Deployment.objects.filter(pk=int(label), cluster_id=cluster_id, is_retired=False)
    if rows.exclude(stable_revision=None).update(next_check_at=clock.now()):
        wake("deployments.reconcile_deployment", int(label))


def on_readings(cluster_ids: Collection[int]) -> None:
    """Judge rollouts as soon as there is something new to judge by: a bad candidate should not keep
    its traffic until a sweep comes by.
    """
    judged = (RolloutPhase.RUNNING, RolloutPhase.PAUSED)
    rows = Rollout.objects.filter(phase__in=judged, deployment__cluster_id__in=cluster_ids)
    for pk in list(rows.values_list("pk", flat=True)):
        leases.nudge(Rollout, pk)
        wake("deployments.advance_rollout", pk)
