"""Watch stable revisions after their rollouts: baseline and golden requests every 15 minutes, answers every day.

Everything is observed first, and recorded in one transaction with the end of the lease: a crash repeats a
check, and nobody is notified twice. Stopped deployments are not selected.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeVar

from django.db import transaction
from django.db.models import QuerySet

from deployments.health.domain import state
from deployments.health.domain.baseline import BaselineMetric
from deployments.health.domain.state import Checked, MetricState
from deployments.health.selectors import traffic
from deployments.health.selectors.traffic import DeploymentTraffic
from deployments.health.services import answer_days, outcome, probes
from deployments.health.services.outcome import HealthCheckOutcome
from deployments.models import Deployment, DeploymentHealth, Revision, Rollout
from deployments.serving.selectors.deployments import OPEN_PHASES
from portal.core import clock, leases
from portal.core.leases import Lease

CHECK_SECONDS: Final = 900
BATCH: Final = 50
_LEASE_SECONDS: Final = 120.0
_WORK: Final = timedelta(seconds=60)
# Streaks count checks of one stretch of time; after a longer gap they begin again.
_LONGEST_GAP: Final = timedelta(minutes=45)
_JUST_NOW: Final = timedelta(minutes=5)
_Row = TypeVar("_Row", Deployment, DeploymentHealth)
_STATE: Final = [
    "revision",
    "since",
    "judged_days",
    "checked_at",
    "baseline",
    "golden_verdict",
    "answers",
]
_RELATED: Final = (
    "deployment__team",
    "deployment__cluster",
    "deployment__stable_revision__version__model__team",
    "deployment__stable_revision__deployment__cluster",
)


def sweep() -> int:
    """Check what is due, for a minute at most; the next sweep continues. Returns how many were checked."""
    begin_missing()
    until = clock.now() + _WORK
    rows = list(_due().select_related(*_RELATED)[:BATCH])
    measured = (
        traffic.read_traffic([row.deployment for row in rows], at=clock.now()) if rows else {}
    )
    checked = 0
    for row in rows:
        if clock.now() > until:
            break
        lease = leases.claim(DeploymentHealth, row.pk, seconds=_LEASE_SECONDS)
        if lease is not None:
            checked += _check_claimed(row, lease, measured[row.deployment_id])
    return checked


def begin_missing() -> None:
    """Create a row for each deployment that serves, spread over 15 minutes by its number."""
    at = clock.now()
    served = _watched(Deployment.objects.all(), "").filter(health=None)
    DeploymentHealth.objects.bulk_create(
        [
            DeploymentHealth(
                deployment_id=pk, next_check_at=at + timedelta(seconds=pk * 61 % CHECK_SECONDS)
            )
            for pk in served.values_list("pk", flat=True)[:1000]
        ],
        ignore_conflicts=True,
    )


def _due() -> QuerySet[DeploymentHealth]:
    at = clock.now()
    rows = DeploymentHealth.objects.filter(leases.free(at), is_on=True, next_check_at__lte=at)
    return _watched(rows, "deployment__").order_by("next_check_at")


def _watched(rows: QuerySet[_Row], prefix: str) -> QuerySet[_Row]:
    return rows.filter(
        **{
            f"{prefix}is_stopped": False,
            f"{prefix}is_retiring": False,
            f"{prefix}is_retired": False,
            f"{prefix}stable_revision__isnull": False,
            f"{prefix}first_ready_at__isnull": False,
        }
    )


def _check_claimed(row: DeploymentHealth, lease: Lease, measured: DeploymentTraffic) -> int:
    """Check the deployment, unless another worker did so between the selection and the claim. Return the number
    of checks.
    """
    row.refresh_from_db(fields=_STATE)
    if row.checked_at is not None and row.checked_at > clock.now() - _JUST_NOW:
        leases.release(DeploymentHealth, lease, next_check_at=_next(row.checked_at))
        return 0
    _check(row, lease, measured)
    return 1


def _check(row: DeploymentHealth, lease: Lease, measured: DeploymentTraffic) -> None:
    at = clock.now()
    revision = row.deployment.stable_revision
    if revision is None:
        leases.release(DeploymentHealth, lease, next_check_at=_next(at))
        return
    since = row.since if row.since and row.revision_id == revision.pk else at
    judged = row.judged_days if row.revision_id == revision.pk else 0
    made = HealthCheckOutcome(
        revision=revision,
        since=since,
        baseline=_baseline(row, measured, at),
        probed=_probed(row.deployment, revision, lease),
        days=answer_days.judge(revision, since=since, judged=judged, at=at),
        at=at,
    )
    with transaction.atomic():
        if leases.release(DeploymentHealth, lease, next_check_at=_next(at)):
            outcome.record(row, made)


def _baseline(row: DeploymentHealth, measured: DeploymentTraffic, at: datetime) -> Checked:
    states = {
        BaselineMetric(name): MetricState.from_json(stored) for name, stored in row.baseline.items()
    }
    is_continued = row.checked_at is not None and row.checked_at > at - _LONGEST_GAP
    return state.check(states, measured.now, measured.history, is_continued=is_continued)


def _probed(deployment: Deployment, revision: Revision, lease: Lease) -> probes.Probed | None:
    """Send the golden requests. None during a rollout, which sends the same requests more often."""
    if Rollout.objects.filter(deployment=deployment, phase__in=OPEN_PHASES).exists():
        return None
    return probes.probe(
        revision,
        renew=lambda: leases.renew(DeploymentHealth, lease, seconds=_LEASE_SECONDS) is not None,
    )


def _next(at: datetime) -> datetime:
    return at + timedelta(seconds=CHECK_SECONDS)
