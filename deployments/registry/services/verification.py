"""One pass over a version: verify an upload, end what takes too long, remove what failed."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.db import InterfaceError, OperationalError

from deployments.models import ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.not_servable import quoted
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import (
    ArtifactError,
    ObjectMissing,
    StoredObject,
    UploadMissing,
)
from deployments.registry.services import examination, transitions, upload_endings, uploads
from deployments.registry.services.checklist import LEASE_SECONDS, Checklist, LeaseLost
from deployments.registry.services.examination import ExaminationResult
from deployments.registry.services.sandboxed_steps import FileRefused, ReaderDied
from deployments.states import VersionState
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import Conflict
from portal.core.leases import Lease

logger = logging.getLogger(__name__)
# Errors of the store, the disk or a concurrent write, and the first death of a reader.
_TRANSIENT: Final = (ArtifactError, Conflict, ReaderDied, OSError)
_EXPECTED: Final = (*_TRANSIENT, FileRefused, LeaseLost, OperationalError, InterfaceError)
_MAX_CAUSE_LENGTH: Final = 300
_UPLOAD_CHECK_INTERVAL: Final = timedelta(hours=1)


def due() -> list[int]:
    return leases.due(ModelVersion)


def advance(version_id: int) -> None:
    """Advance the version by one step, unless another worker holds its lease.

    Transient errors release the row with exponential backoff. Any other error of the examination
    fails only this version, so that a sweep continues with the others.
    """
    lease = leases.claim(ModelVersion, version_id, seconds=LEASE_SECONDS)
    if lease is None:
        return
    is_done = False
    try:
        _advance(version_id, lease)
        is_done = True
    except LeaseLost:
        logger.info("version %s was stopped or taken over by another worker", version_id)
    except _TRANSIENT as error:
        logger.warning("version %s: retrying later: %s", version_id, error)
    finally:
        if not is_done:
            leases.back_off(ModelVersion, lease)


def _advance(version_id: int, lease: Lease) -> None:
    version = ModelVersion.objects.select_related("model__team").get(pk=version_id)
    match VersionState(version.state):
        case VersionState.UPLOADING:
            _check_upload(version, lease)
        case VersionState.VERIFYING:
            _verify(version, lease)
        case VersionState.FAILED:
            _remove(version)
            if not upload_endings.remove_row(version):
                leases.release(ModelVersion, lease, next_check_at=None)
        case VersionState.READY:
            _end_release(version, lease)
        case _:
            leases.release(ModelVersion, lease, next_check_at=None)


def _check_upload(version: ModelVersion, lease: Lease) -> None:
    """Continue an assembled upload; fail one that is not completed in time."""
    at = clock.now()
    try:
        object_store.store().list_parts(version.key, version.upload_id)
    except UploadMissing:
        _finish_upload(version, lease)
        return
    if version.deadline_at is not None and version.deadline_at <= at:
        hours = int(uploads.UPLOAD_WITHIN.total_seconds() // 3600)
        transitions.to_failed(
            version=version,
            reason=f"The upload was not completed within {hours} hours. Start a new version.",
            lease=lease,
        )
        leases.release(ModelVersion, lease, next_check_at=at)
        return
    soonest = min(version.deadline_at or at, at + _UPLOAD_CHECK_INTERVAL)
    leases.release(ModelVersion, lease, next_check_at=soonest)


def _finish_upload(version: ModelVersion, lease: Lease) -> None:
    """The multipart upload no longer exists: completed by a request that died, or aborted in the store."""
    stored = _stored(version)
    if stored is None:
        reason = "The upload was removed from object storage. Start a new version."
        transitions.to_failed(version=version, reason=reason, lease=lease)
    elif not stored.version_id:
        # Without a VersionId, the uploaded bytes can't be identified.
        reason = (
            "The bucket has versioning disabled. Ask a platform admin to enable it, then "
            "start a new version."
        )
        transitions.to_failed(version=version, reason=reason, lease=lease)
    else:
        transitions.to_verifying(
            version=version,
            actor=SYSTEM,
            s3_version_id=stored.version_id,
            size=stored.size_bytes,
        )
    leases.release(ModelVersion, lease, next_check_at=clock.now())


def _stored(version: ModelVersion) -> StoredObject | None:
    try:
        return object_store.store().head(version.key)
    except ObjectMissing:
        return None


def _verify(version: ModelVersion, lease: Lease) -> None:
    if version.deadline_at is not None and version.deadline_at <= clock.now():
        minutes = int(transitions.VERIFY_WITHIN.total_seconds() // 60)
        again = "Declare it again" if version.former else "Upload the file again"
        reason = (
            f"Verification did not finish within {minutes} minutes. {again}; if it fails again, "
            "ask a platform admin to check the worker logs."
        )
        _fail(version, lease, reason, {})
        leases.release(ModelVersion, lease, next_check_at=clock.now())
        return
    checklist = Checklist(version.pk, lease)
    with tempfile.TemporaryDirectory(prefix="slipway-verify-") as folder:
        next_check_at = _conclude(version, Path(folder), checklist)
    leases.release(ModelVersion, checklist.lease, next_check_at=next_check_at)


def _conclude(version: ModelVersion, folder: Path, checklist: Checklist) -> datetime | None:
    """The next check: immediately after a failure, so that the bytes are deleted."""
    try:
        with _FailOnUnexpected(version, checklist):
            _decide(version, examination.examine(version, folder, checklist), checklist)
    except FileRefused as refusal:
        facts = {"sha256": version.sha256, "checks": checklist.to_json()}
        _fail(version, checklist.lease, str(refusal), facts)
    return clock.now() if version.state == VersionState.FAILED else None


class _FailOnUnexpected:
    """Fail the version on an unexpected error of its examination."""

    def __init__(self, version: ModelVersion, checklist: Checklist) -> None:
        self._version = version
        self._checklist = checklist

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: object
    ) -> bool:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, _EXPECTED):
            return False
        logger.error("version %s could not be examined", self._version.pk, exc_info=error)
        cause = quoted(f"{kind.__name__}: {error}", longest=_MAX_CAUSE_LENGTH)
        reason = f"The file could not be read: {cause}. Export the model again."
        # The checklist is not written: it may be the cause of the error.
        _fail(self._version, self._checklist.lease, reason, {"sha256": self._version.sha256})
        return True


def _decide(version: ModelVersion, result: ExaminationResult, checklist: Checklist) -> None:
    facts = result.columns | {"checks": checklist.to_json()}
    if result.quarantine_reason:
        transitions.to_quarantined(
            version=version,
            lease=checklist.lease,
            facts=facts,
            reason=result.quarantine_reason,
        )
    else:
        transitions.to_ready(version=version, lease=checklist.lease, facts=facts)


def _fail(version: ModelVersion, lease: Lease, reason: str, facts: Mapping[str, Any]) -> None:
    """A version that was ready before becomes ready again: a declaration must not delete its bytes."""
    if version.former:
        full_reason = (
            f"Verifying it with a new declaration failed: {reason} {transitions.AS_BEFORE}"
        )
        transitions.to_ready_again(version=version, reason=full_reason, lease=lease)
    else:
        transitions.to_failed(version=version, reason=reason, facts=facts, lease=lease)


def _remove(version: ModelVersion) -> None:
    """Delete everything of a failed version from the store. Abort first, so that nothing is added."""
    store = object_store.store()
    if version.upload_id:
        store.abort_upload(version.key, version.upload_id)
    store.delete_all_versions(version.key)
    store.delete_all_versions(
        object_keys.number_prefix(
            team=version.team.slug, model=version.model.name, number=version.number
        )
    )
    ModelVersion.objects.filter(pk=version.pk, state=VersionState.FAILED).update(
        upload_id="", s3_version_id=""
    )


def _end_release(version: ModelVersion, lease: Lease) -> None:
    """End a release from quarantine on time. Running deployments continue; new ones are refused."""
    ends_at = version.deadline_at
    if ends_at is not None and ends_at <= clock.now():
        transitions.to_archived(
            version=version, actor=SYSTEM, reason="The release from quarantine has ended."
        )
        ends_at = None
    leases.release(ModelVersion, lease, next_check_at=ends_at)
