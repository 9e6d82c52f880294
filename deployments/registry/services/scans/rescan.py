"""Scan versions again when a scanner changed. A worse verdict quarantines a version and names what serves it.

One version at a time, each under its lease, so that a pass may end anywhere: what is left still has the
former engines in its row. Uploads go first: a pass does nothing while one waits to be verified.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet
from django.urls import reverse

from deployments.models import ModelVersion
from deployments.registry.domain.formats import catalogue, pickles
from deployments.registry.domain.scanning import releases, verdicts
from deployments.registry.domain.scanning.verdicts import ScanReport
from deployments.registry.gateways import object_store, scanners
from deployments.registry.gateways.object_store import ArtifactError, StoredObject
from deployments.registry.gateways.stored_artifact import StoredArtifact
from deployments.registry.selectors import versions
from deployments.registry.services import transitions
from deployments.registry.services.scans import scanning
from deployments.registry.services.scans import step as scan_step
from deployments.registry.services.scans.scanning import ScanRequest
from deployments.states import VersionState
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease
from portal.notifications import events
from portal.notifications import services as notifications

logger = logging.getLogger(__name__)

_STATES: Final = (VersionState.READY, VersionState.QUARANTINED)
_TIME_BUDGET: Final = timedelta(seconds=40)
_LEASE_SECONDS: Final = 600
_MAX_LISTED: Final = 5


def pending() -> QuerySet[ModelVersion]:
    """Return the uploaded versions whose last scan was by other engines, the longest known first."""
    rows = ModelVersion.objects.filter(state__in=_STATES, source_uri="")
    current = verdicts.describe_engines(scanners.engines())
    return rows.exclude(scan_engines=current).order_by("check_failures", "pk")


def sweep(*, limit: int = 50) -> int:
    """Scan versions that wait for it, and return how many were scanned."""
    if ModelVersion.objects.filter(state=VersionState.VERIFYING).exists():
        return 0
    until, done = clock.now() + _TIME_BUDGET, 0
    for version_id in pending().values_list("pk", flat=True)[:limit]:
        if clock.now() >= until:
            break
        done += _scan_under_lease(version_id)
    return done


def _scan_under_lease(version_id: int) -> bool:
    lease = leases.claim(ModelVersion, version_id, seconds=_LEASE_SECONDS)
    if lease is None:
        return False
    try:
        version = pending().select_related("model__team").filter(pk=version_id).first()
        if version is not None:
            _scan(version, lease)
    except (ArtifactError, Conflict, OSError) as error:
        logger.warning("version %s is scanned again later: %s", version_id, error)
        leases.back_off(ModelVersion, lease)
        return False
    ends_at = ModelVersion.objects.values_list("deadline_at", flat=True).get(pk=version_id)
    leases.release(ModelVersion, lease, next_check_at=ends_at)
    return version is not None


def _scan(version: ModelVersion, lease: Lease) -> None:
    store = object_store.store()
    objects: dict[str, StoredObject] = {
        file.path: store.head(file.key, file.s3_version_id)
        for file in version.files.select_related("version")
    }
    artifact = StoredArtifact(store, objects)
    is_pickle = version.format == pickles.PICKLE.key and len(objects) == 1
    report = scanning.scan(ScanRequest(artifact, pickle=next(iter(objects)) if is_pickle else ""))
    columns = scan_step.columns_of(report)
    with transaction.atomic():
        if version.state == VersionState.READY and _is_worse(version, report):
            _quarantine(version, report, columns, lease)
        else:
            ModelVersion.objects.filter(pk=version.pk, lease_token=lease.token).update(**columns)


def _is_worse(version: ModelVersion, report: ScanReport) -> bool:
    """Whether nobody decided on these findings: a release covers those that the admin saw. One that ended is
    left to the sweep of its end.
    """
    release = releases.from_json(version.release)
    if release is not None:
        return not release.has_decided_on(report)
    kind = catalogue.by_key(version.format)
    return report.is_blocking and releases.is_release_needed(kind, report)


def _quarantine(
    version: ModelVersion, report: ScanReport, columns: dict[str, Any], lease: Lease
) -> None:
    names = [item.name for item in versions.deployments_serving([version.pk]).get(version.pk, [])]
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    serving = f"It serves {', '.join(names[:_MAX_LISTED])}{more}, which continue." if names else ""
    engines = verdicts.describe_engines(report.engines)
    release = releases.from_json(version.release)
    worse = "" if release is None else release.describe_worse(report)
    verdict = f"A new scan ({engines}) changed the verdict. {report.describe()}."
    reason = " ".join(filter(None, (verdict, worse, serving)))
    transitions.to_quarantined(version=version, reason=reason, facts=columns, lease=lease)
    notifications.notify(
        team=version.team,
        event=events.DEPLOYMENT_FAILING.code,
        subject=f"{version.label} is quarantined",
        message=reason,
        path=reverse("version", args=(version.team.slug, version.model.name, version.number)),
        data={"deployments": names},
        is_for_admins=True,
    )
