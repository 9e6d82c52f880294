"""One tick of a version: verify what was uploaded, end what takes too long, remove what failed."""

from __future__ import annotations

import logging
import tempfile
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from deployments.domain import layout
from deployments.domain.states import VersionState
from deployments.gateways import artifacts
from deployments.gateways.artifacts import ArtifactError, ObjectMissing, StoredObject, UploadMissing
from deployments.models import ModelVersion
from deployments.services import examination, uploads, version_states
from deployments.services.checklist import LEASE_SECONDS, Checklist, LeaseLost
from deployments.services.examination import Refused
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease

logger = logging.getLogger(__name__)
_OPEN_UPLOAD_EVERY: Final = timedelta(hours=1)


def due() -> list[int]:
    return leases.due(ModelVersion)


def advance(version_id: int) -> None:
    """Take the version one step, unless another worker holds it. May run twice, late, or never.

    An error that is not ours gives the row back with a growing wait, then goes to the log.
    """
    lease = leases.claim(ModelVersion, version_id, seconds=LEASE_SECONDS)
    if lease is None:
        return
    is_done = False
    try:
        _advance(version_id, lease)
        is_done = True
    except LeaseLost:
        logger.info("version %s was taken over by another worker", version_id)
    except (ArtifactError, Conflict) as error:
        logger.warning("version %s is tried again later: %s", version_id, error)
    finally:
        if not is_done:
            leases.back_off(ModelVersion, lease)


def _advance(version_id: int, lease: Lease) -> None:
    version = ModelVersion.objects.select_related("model__team").get(pk=version_id)
    match VersionState(version.state):
        case VersionState.UPLOADING:
            _watch_upload(version, lease)
        case VersionState.VERIFYING:
            _verify(version, lease)
        case VersionState.FAILED:
            _remove(version)
            leases.release(ModelVersion, lease, next_check_at=None)
        case VersionState.READY:
            _end_release(version, lease)
        case _:
            leases.release(ModelVersion, lease, next_check_at=None)


def _watch_upload(version: ModelVersion, lease: Lease) -> None:
    """An upload that was put together goes on; one that nobody finishes in time is given up."""
    at = clock.now()
    try:
        artifacts.store().list_parts(version.key, version.upload_id)
    except UploadMissing:
        _adopt(version, lease)
        return
    if version.deadline_at is not None and version.deadline_at <= at:
        hours = int(uploads.UPLOAD_WITHIN.total_seconds() // 3600)
        version_states.to_failed(
            version=version,
            reason=f"The upload was not completed within {hours} hours. Start a new version.",
            lease=lease,
        )
        leases.release(ModelVersion, lease, next_check_at=at)
        return
    soonest = min(version.deadline_at or at, at + _OPEN_UPLOAD_EVERY)
    leases.release(ModelVersion, lease, next_check_at=soonest)


def _adopt(version: ModelVersion, lease: Lease) -> None:
    """The multipart upload is gone: completed by a request that died, or aborted in the store."""
    stored = _stored(version)
    if stored is None:
        reason = "The upload was removed from the object store. Start a new version."
        version_states.to_failed(version=version, reason=reason, lease=lease)
    elif not stored.version_id:
        # Nothing then says which bytes were uploaded.
        reason = (
            "The bucket keeps no object versions. When a platform admin has turned versioning on, "
            "start a new version."
        )
        version_states.to_failed(version=version, reason=reason, lease=lease)
    else:
        version_states.to_verifying(
            version=version,
            actor=SYSTEM,
            s3_version_id=stored.version_id,
            size=stored.size_bytes,
        )
    leases.release(ModelVersion, lease, next_check_at=clock.now())


def _stored(version: ModelVersion) -> StoredObject | None:
    try:
        return artifacts.store().head(version.key)
    except ObjectMissing:
        return None


def _verify(version: ModelVersion, lease: Lease) -> None:
    if version.deadline_at is not None and version.deadline_at <= clock.now():
        minutes = int(version_states.VERIFY_WITHIN.total_seconds() // 60)
        reason = (
            f"Verification did not end within {minutes} minutes. Upload the file again; if that "
            "fails too, ask a platform admin to look at the workers' log."
        )
        version_states.to_failed(version=version, reason=reason, lease=lease)
        leases.release(ModelVersion, lease, next_check_at=clock.now())
        return
    checklist = Checklist(version.pk, lease)
    with tempfile.TemporaryDirectory(prefix="slipway-verify-") as folder:
        next_check_at = _conclude(version, Path(folder), checklist)
    leases.release(ModelVersion, checklist.lease, next_check_at=next_check_at)


def _conclude(version: ModelVersion, folder: Path, checklist: Checklist) -> datetime | None:
    """When to look again: now for what failed, so that its bytes are removed."""
    try:
        findings = examination.examine(version, folder, checklist)
    except Refused as refusal:
        version_states.to_failed(
            version=version,
            reason=str(refusal),
            facts={"sha256": version.sha256, "checks": checklist.rows},
            lease=checklist.lease,
        )
        return clock.now()
    facts = findings.columns | {"checks": checklist.rows}
    if findings.quarantine_reason:
        version_states.to_quarantined(
            version=version,
            lease=checklist.lease,
            facts=facts,
            reason=findings.quarantine_reason,
        )
    else:
        version_states.to_ready(version=version, lease=checklist.lease, facts=facts)
    return None


def _remove(version: ModelVersion) -> None:
    """Leave nothing of a failed version in the store. First abort, so that nothing can be added."""
    store = artifacts.store()
    if version.upload_id:
        store.abort_upload(version.key, version.upload_id)
    store.delete_all_versions(version.key)
    store.delete_all_versions(
        layout.number_prefix(
            team=version.team.slug, model=version.model.name, number=version.number
        )
    )
    ModelVersion.objects.filter(pk=version.pk, state=VersionState.FAILED).update(
        upload_id="", s3_version_id=""
    )


def _end_release(version: ModelVersion, lease: Lease) -> None:
    """A release from quarantine ends on its day; what serves goes on, nothing new may use it."""
    ends_at = version.deadline_at
    if ends_at is not None and ends_at <= clock.now():
        version_states.to_archived(
            version=version, actor=SYSTEM, reason="The release from quarantine has ended."
        )
        ends_at = None
    leases.release(ModelVersion, lease, next_check_at=ends_at)
