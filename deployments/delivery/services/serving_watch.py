"""Compare what serving would read with what was approved, again and again while it serves.

What runs has loaded its bytes already; but a pod that starts anew would load what lies there then.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.urls import reverse

from deployments import audit_actions
from deployments.manifests.services import serving_bytes
from deployments.manifests.services.serving_bytes import Bucket
from deployments.models import Deployment, Revision
from deployments.registry.gateways.object_store import ArtifactError
from deployments.serving.selectors import revisions
from deployments.serving.services import timeline
from portal.accounts.policy import SYSTEM
from portal.audit import trail
from portal.core import clock
from portal.notifications import events
from portal.notifications import services as notifications

logger = logging.getLogger(__name__)

EVERY: Final = timedelta(minutes=10)
_WORK: Final = timedelta(seconds=40)
_AGAIN: Final = "The bucket matches what was approved again."


def sweep(*, limit: int = 200) -> int:
    """Those not looked at for the longest time first, as many as there is time for."""
    until, done, bucket = clock.now() + _WORK, 0, Bucket()
    for deployment in list(_due()[:limit]):
        if clock.now() > until:
            break
        try:
            _look(deployment, bucket)
        except ArtifactError as error:
            logger.warning("the object store does not answer: %s", error)
            break
        done += 1
    return done


def alarm(deployment: Deployment, problem: str) -> None:
    """A start was refused. Told once; what else differs, and when it ends, the next look tells."""
    if not deployment.bytes_problem:
        _write(deployment, problem)


def look_soon(deployment: Deployment) -> None:
    """A start went well while something differed: the next sweep looks whether it still does."""
    if deployment.bytes_problem:
        Deployment.objects.filter(pk=deployment.pk).update(bytes_checked_at=None)


def _write(deployment: Deployment, problem: str) -> None:
    """Tells of it when it is news; `problem` is empty when all is well."""
    at, rows = clock.now(), Deployment.objects.filter(pk=deployment.pk)
    with transaction.atomic():
        locked = rows.select_for_update(no_key=True)
        before = locked.values_list("bytes_problem", flat=True).get()
        rows.update(bytes_checked_at=at)
        if before != problem:
            # Its state gives the reason, so it is looked at once more.
            rows.update(bytes_problem=problem, next_check_at=at)
            _tell(deployment, before=before, problem=problem)
    deployment.bytes_problem = problem


def _due() -> QuerySet[Deployment]:
    rows = Deployment.objects.select_related("team", "cluster")
    serving = rows.filter(is_retired=False, is_retiring=False, is_stopped=False)
    is_due = Q(bytes_checked_at=None) | Q(bytes_checked_at__lte=clock.now() - EVERY)
    oldest = F("bytes_checked_at").asc(nulls_first=True)
    return serving.filter(is_due).exclude(stable_revision=None).order_by(oldest, "pk")


def _look(deployment: Deployment, bucket: Bucket) -> None:
    revisions.load_onto(deployment)
    found: list[str] = []
    for revision in (deployment.stable_revision, deployment.candidate_revision):
        if revision is not None:
            is_laid_out = _is_pushed(deployment, revision)
            found += serving_bytes.of_revision(revision, bucket, is_laid_out=is_laid_out)
    problem = serving_bytes.problem_words(sorted(set(found))) if found else ""
    _write(deployment, problem)


def _is_pushed(deployment: Deployment, revision: Revision) -> bool:
    seen = deployment.observed.get(f"r{revision.number}", {})
    return bool(seen.get("stage", "missing") != "missing")


def _tell(deployment: Deployment, *, before: str, problem: str) -> None:
    words = problem or _AGAIN
    timeline.note(
        deployment=deployment,
        kind="bytes differ" if problem else "bytes as approved",
        message=words,
        actor=SYSTEM,
    )
    trail.record(
        actor=SYSTEM,
        action=audit_actions.BYTES_DIFFER if problem else audit_actions.BYTES_AS_APPROVED,
        obj=deployment,
        label=str(deployment),
        team_slug=deployment.team.slug,
        before={"problem": before},
        after={"problem": problem},
        reason=words,
    )
    notifications.notify(
        team=deployment.team,
        event=events.DEPLOYMENT_FAILING.code,
        subject=f"{deployment}: its serving files {'were changed' if problem else 'match again'}",
        message=words,
        path=reverse("deployment", args=(deployment.team.slug, deployment.name)),
        data={"problem": problem},
    )
