"""Periodically compare the serving files of running deployments with what was approved.

Running pods have loaded their files already, but a new pod would load whatever the bucket holds then.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.urls import reverse

from deployments import audit_actions
from deployments.manifests.selectors.rendered import RenderedDeployment
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket
from deployments.models import Deployment
from deployments.registry.gateways.object_store import ArtifactError
from deployments.serving.domain.observed_revision import ObservedRevision
from deployments.serving.selectors import revisions
from deployments.serving.services import timeline
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock
from portal.notifications import events
from portal.notifications import services as notifications

logger = logging.getLogger(__name__)

EVERY: Final = timedelta(minutes=10)
_TIME_BUDGET: Final = timedelta(seconds=40)
_RESTORED: Final = "The bucket matches what was approved again."


def sweep(*, limit: int = 200) -> int:
    """Check the longest unchecked deployments first, as many as the time budget allows. Returns how many were
    checked.
    """
    until, done, bucket = clock.now() + _TIME_BUDGET, 0, Bucket()
    for deployment in list(_due()[:limit]):
        if clock.now() > until:
            break
        try:
            _check(deployment, bucket)
        except ArtifactError as error:
            logger.warning("the object store does not answer: %s", error)
            break
        done += 1
    return done


def report_problem(deployment: Deployment, problem: str) -> None:
    """Report that a push was refused. Notifies once; the next check reports further differences and the end."""
    if not deployment.bytes_problem:
        _write(deployment, problem)


def check_soon(deployment: Deployment) -> None:
    """Let the next sweep check whether a recorded problem persists, since a push succeeded."""
    if deployment.bytes_problem:
        Deployment.objects.filter(pk=deployment.pk).update(bytes_checked_at=None)


def _write(deployment: Deployment, problem: str) -> None:
    """Store the problem, which is empty while the files match, and notify if it changed."""
    at, rows = clock.now(), Deployment.objects.filter(pk=deployment.pk)
    with transaction.atomic():
        locked = rows.select_for_update(no_key=True)
        before = locked.values_list("bytes_problem", flat=True).get()
        rows.update(bytes_checked_at=at)
        if before != problem:
            # The deployment's state reason names the problem, so requeue it.
            rows.update(bytes_problem=problem, next_check_at=at)
            _notify(deployment, before=before, problem=problem)
    deployment.bytes_problem = problem


def _due() -> QuerySet[Deployment]:
    rows = Deployment.objects.select_related("team", "cluster")
    serving = rows.filter(is_retired=False, is_retiring=False, is_stopped=False)
    is_due = Q(bytes_checked_at=None) | Q(bytes_checked_at__lte=clock.now() - EVERY)
    oldest = F("bytes_checked_at").asc(nulls_first=True)
    return serving.filter(is_due).exclude(stable_revision=None).order_by(oldest, "pk")


def _check(deployment: Deployment, bucket: Bucket) -> None:
    revisions.load_onto(deployment)
    rendered = RenderedDeployment(deployment)
    differences: set[str] = set()
    for revision in rendered.revisions:
        is_laid_out = ObservedRevision.from_column(deployment.observed, revision.number).exists
        differences.update(
            serving_bytes.compare_revision(
                rendered.render_revision(revision), bucket, is_laid_out=is_laid_out
            )
        )
    problem = serving_bytes.describe_problem(sorted(differences)) if differences else ""
    _write(deployment, problem)


def _notify(deployment: Deployment, *, before: str, problem: str) -> None:
    message = problem or _RESTORED
    timeline.note(
        deployment=deployment,
        kind="bytes differ" if problem else "bytes as approved",
        message=message,
        actor=SYSTEM,
    )
    trail.record(
        actor=SYSTEM,
        action=audit_actions.BYTES_DIFFER if problem else audit_actions.BYTES_AS_APPROVED,
        obj=deployment,
        team_slug=deployment.team.slug,
        before={"problem": before},
        after={"problem": problem},
        reason=message,
    )
    notifications.notify(
        team=deployment.team,
        event=events.DEPLOYMENT_FAILING.code,
        subject=f"{deployment}: its serving files {'were changed' if problem else 'match again'}",
        message=message,
        path=reverse("deployment", args=(deployment.team.slug, deployment.name)),
        data={"problem": problem},
    )
