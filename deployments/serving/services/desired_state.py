"""The only writers of desired state. Each raises the generation and makes the row due.

Call them inside the transaction of the decision; reconciliation makes the cluster follow.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any, Final

from django.db.models import F

from deployments.models import Deployment, KeysAtGateway, Revision
from portal.core import clock
from portal.core.wakeups import wake

PROGRESS_SECONDS: Final = 30 * 60


def serve_first(deployment: Deployment, revision: Revision) -> None:
    _set_revisions(deployment, stable=revision, candidate=None, weight=0)


def add_candidate(
    deployment: Deployment,
    revision: Revision,
    *,
    replicas: int | None = None,
    baseline: Revision | None = None,
) -> None:
    """Add a candidate next to the stable revision, without traffic yet. `replicas` None means as many as
    approved.
    """
    _set_revisions(
        deployment,
        stable=deployment.stable_revision,
        candidate=revision,
        weight=0,
        replicas=replicas,
        baseline=baseline,
    )


def set_candidate_replicas(deployment: Deployment, count: int | None) -> None:
    """Set the candidate's replicas. Its ready pods stay when there are more. None means as many as approved."""
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(candidate_replicas=count)
    deployment.candidate_replicas = count


def set_weight(deployment: Deployment, weight: int, *, mirror: int = 0) -> None:
    """Set the percentage of requests sent, or mirrored, to the candidate: never both."""
    _set_revisions(
        deployment,
        stable=deployment.stable_revision,
        candidate=deployment.candidate_revision,
        weight=weight,
        mirror=mirror,
        replicas=deployment.candidate_replicas,
        baseline=deployment.baseline_revision,
    )


def swap(deployment: Deployment) -> None:
    """Exchange stable and candidate; the new candidate gets no traffic, and both are of full size."""
    _set_revisions(
        deployment,
        stable=deployment.candidate_revision,
        candidate=deployment.stable_revision,
        weight=0,
        baseline=deployment.baseline_revision,
    )


def drop_baseline(deployment: Deployment) -> None:
    """Call it when no requests reach the baseline any more."""
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(baseline_revision=None)
    deployment.baseline_revision = None


def drop_candidate(deployment: Deployment) -> None:
    """Remove the candidate and its baseline."""
    _set_revisions(deployment, stable=deployment.stable_revision, candidate=None, weight=0)


def scale(deployment: Deployment, to: Mapping[str, Any]) -> None:
    """Change the replicas of the revision that `to` names, as deployments/spec/domain/replicas.py
    writes it; ready pods stay.
    """
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(scale=dict(to))
    deployment.scale = dict(to)


def stop(deployment: Deployment) -> None:
    """Remove route and workloads; the desired revisions stay."""
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(is_stopped=True)
    deployment.is_stopped = True


def start(deployment: Deployment) -> None:
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(is_stopped=False)
    deployment.is_stopped = False


def retire(deployment: Deployment) -> None:
    """Remove everything from the cluster; the row becomes retired once that is observed."""
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(is_retiring=True)
    deployment.is_retiring = True


def change_caller_keys(deployment: Deployment) -> None:
    """Have the gateway get the keys of callers as they are now."""
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(
        caller_keys_generation=F("caller_keys_generation") + 1
    )
    KeysAtGateway.objects.update_or_create(
        deployment=deployment, defaults={"changed_at": clock.now()}
    )


def _set_revisions(
    deployment: Deployment,
    *,
    stable: Revision | None,
    candidate: Revision | None,
    weight: int,
    mirror: int = 0,
    replicas: int | None = None,
    baseline: Revision | None = None,
) -> None:
    _update(deployment)
    Deployment.objects.filter(pk=deployment.pk).update(
        stable_revision=stable,
        candidate_revision=candidate,
        baseline_revision=baseline,
        candidate_weight=weight,
        candidate_mirror=mirror,
        candidate_replicas=replicas,
    )
    deployment.stable_revision, deployment.candidate_revision = stable, candidate
    deployment.baseline_revision = baseline
    deployment.candidate_weight, deployment.candidate_mirror = weight, mirror
    deployment.candidate_replicas = replicas


def _update(deployment: Deployment) -> None:
    at = clock.now()
    Deployment.objects.filter(pk=deployment.pk).update(
        desired_generation=F("desired_generation") + 1,
        next_check_at=at,
        progress_deadline_at=at + timedelta(seconds=PROGRESS_SECONDS),
    )
    wake("deployments.reconcile_deployment", deployment.pk)
