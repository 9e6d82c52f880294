"""Handlers of fleet's events: what changed on a cluster is reconciled soon."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from deployments.models import Deployment, Pipeline, Rollout
from deployments.states import JUDGED_PHASES
from portal.core import clock, leases
from portal.core.wakeups import wake

# More are reconciled together by one sweep.
_FEW = 20


def on_change(cluster_id: int, labels: Collection[str]) -> None:
    """Reconcile the deployments that labels name. Labels are hints only: anyone can write them, so only live
    deployments of that cluster count.
    """
    rows = Deployment.objects.filter(pk__in=_ids(labels), cluster_id=cluster_id, is_retired=False)
    _reconcile_soon(list(rows.exclude(stable_revision=None).values_list("pk", flat=True)))


def on_deletion(cluster_id: int, labels: Collection[str]) -> None:
    """Compare all dependent objects with the approved manifests, now: one of them is gone."""
    rows = Deployment.objects.filter(pk__in=_ids(labels), cluster_id=cluster_id, is_retired=False)
    live = list(rows.exclude(stable_revision=None).values_list("pk", flat=True))
    Deployment.objects.filter(pk__in=live).update(objects_checked_at=None)
    _reconcile_soon(live)


def _reconcile_soon(live: Sequence[int]) -> None:
    if not live:
        return
    Deployment.objects.filter(pk__in=live).update(next_check_at=clock.now())
    if len(live) > _FEW:
        wake("deployments.sweep_deployments")
        return
    for pk in live:
        wake("deployments.reconcile_deployment", pk)


def on_pipeline_change(cluster_id: int, labels: Collection[str]) -> None:
    rows = Pipeline.objects.filter(pk__in=_ids(labels), cluster_id=cluster_id, is_retired=False)
    for pk in list(rows.filter(desired_generation__gt=0).values_list("pk", flat=True)):
        leases.nudge(Pipeline, pk)
        wake("deployments.reconcile_pipeline", pk)


def _ids(labels: Collection[str]) -> set[int]:
    return {int(label) for label in labels if label.isdecimal() and len(label) <= 18}


def on_readings(cluster_ids: Collection[int]) -> None:
    """Evaluate rollouts as soon as there are new readings: a bad candidate should not keep its
    traffic until the next sweep.
    """
    rows = Rollout.objects.filter(phase__in=JUDGED_PHASES, deployment__cluster_id__in=cluster_ids)
    for pk in list(rows.values_list("pk", flat=True)):
        leases.nudge(Rollout, pk)
        wake("deployments.advance_rollout", pk)
