"""Passes over versions: verify an upload, end what takes too long, remove what failed."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

from django.db import InterfaceError, OperationalError, transaction
from django.db.models import Max

from deployments.models import Import, LoadTestRun, ModelVersion
from deployments.registry.domain import object_keys
from deployments.registry.domain.load_tests.examined_version import ExaminedVersion
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactError
from deployments.registry.services import file_uploads, transitions, upload_endings, uploads
from deployments.registry.services.examination import cluster_load_test, version_examination
from deployments.registry.services.examination.checklist import LEASE_SECONDS, Checklist, LeaseLost
from deployments.registry.services.examination.sandboxed_steps import FileRefused, ReaderDied
from deployments.registry.services.examination.version_examination import ExaminationResult
from deployments.states import VersionState
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import Conflict, Unavailable
from portal.core.leases import Lease

logger = logging.getLogger(__name__)
# Errors of the store, the disk or a concurrent write, and the first death of a reader.
_TRANSIENT: Final = (ArtifactError, Conflict, ReaderDied, Unavailable, OSError)
_EXPECTED: Final = (*_TRANSIENT, FileRefused, LeaseLost, OperationalError, InterfaceError)
_UPLOAD_CHECK_INTERVAL: Final = timedelta(hours=1)
_ASSEMBLY_CHECK_INTERVAL: Final = timedelta(seconds=30)


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
    if version.state != VersionState.VERIFYING:
        cluster_load_test.remove_of(version)
    match VersionState(version.state):
        case VersionState.UPLOADING:
            _check_upload(version, lease)
        case VersionState.VERIFYING:
            _verify(version, lease)
        case VersionState.FAILED:
            _remove(version)
            if until := _assembling_until(version):
                # An object may still appear. The next pass deletes it.
                leases.release(ModelVersion, lease, next_check_at=until)
            elif not upload_endings.remove_row(version):
                leases.release(ModelVersion, lease, next_check_at=None)
        case VersionState.READY:
            _end_release(version, lease)
        case _:
            leases.release(ModelVersion, lease, next_check_at=None)


def _check_upload(version: ModelVersion, lease: Lease) -> None:
    """Continue an upload whose files are all stored; fail one that is not continued in time."""
    at = clock.now()
    try:
        is_stored = _is_stored(version)
    except Unavailable as error:
        if error.code != "bucket_not_versioned":
            raise
        # Without a VersionId, the uploaded bytes can't be identified.
        reason = f"{error} Then start a new version."
        transitions.to_failed(version=version, reason=reason, lease=lease)
        leases.release(ModelVersion, lease, next_check_at=at)
        return
    if is_stored:
        transitions.to_verifying(version=version, actor=SYSTEM)
        leases.release(ModelVersion, lease, next_check_at=clock.now())
        return
    if version.deadline_at is not None and version.deadline_at <= at:
        hours = int(uploads.UPLOAD_WITHIN.total_seconds() // 3600)
        transitions.to_failed(
            version=version,
            reason=f"The upload was not continued within {hours} hours. Start a new version.",
            lease=lease,
        )
        leases.release(ModelVersion, lease, next_check_at=at)
        return
    interval = _UPLOAD_CHECK_INTERVAL
    if _assembling_until(version):
        interval = _ASSEMBLY_CHECK_INTERVAL
    soonest = min(version.deadline_at or at, at + interval)
    leases.release(ModelVersion, lease, next_check_at=soonest)


def _is_stored(version: ModelVersion) -> bool:
    """Whether all files are in the store, also those whose completing request died. An import finishes
    by its own pass: its files may not be listed yet.
    """
    if Import.objects.filter(version=version).exists():
        return False
    open_files = version.files.filter(s3_version_id="").select_related("version")
    return all(
        bool(file.upload_id) and file_uploads.parts_state(file).is_assembled
        for file in open_files.order_by("upload_id")
    )


def _assembling_until(version: ModelVersion) -> datetime | None:
    """Return the latest deadline of the files that the store assembles now. None if it assembles none."""
    files = version.files.filter(s3_version_id="", assembly_deadline_at__gt=clock.now())
    last: datetime | None = files.aggregate(last=Max("assembly_deadline_at"))["last"]
    return last


def _verify(version: ModelVersion, lease: Lease) -> None:
    if run := cluster_load_test.run_of(version):
        _await_load_test(version, run, lease)
        return
    if version.deadline_at is not None and version.deadline_at <= clock.now():
        within = transitions.verify_within(version.declared_size_bytes)
        minutes = int(within.total_seconds() // 60)
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
        next_check_at = _conclude(
            version,
            lambda: version_examination.examine(version, Path(folder), checklist),
            checklist,
        )
    leases.release(ModelVersion, checklist.lease, next_check_at=next_check_at)


def _await_load_test(version: ModelVersion, run: LoadTestRun, lease: Lease) -> None:
    """Advance the load test. The row of its run goes with the end of the verification, so that its result
    counts once.
    """
    examined = ExaminedVersion.from_json(run.columns)
    checklist = Checklist(version.pk, lease, examined.checks)
    result = cluster_load_test.advance(run, checklist)
    if result is None:
        next_check_at: datetime | None = cluster_load_test.next_check_at(run)
    else:
        with transaction.atomic():
            run.delete()
            next_check_at = _conclude(
                version,
                lambda: version_examination.after_load_test(examined, result, checklist),
                checklist,
            )
    leases.release(ModelVersion, checklist.lease, next_check_at=next_check_at)


def _conclude(
    version: ModelVersion, examine: Callable[[], ExaminationResult], checklist: Checklist
) -> datetime | None:
    """Finish the verification and return when to check next: immediately after a failure, so that the bytes are
    deleted, and for a load test on a cluster; otherwise at the end of a release.
    """
    try:
        with _FailOnUnexpected(version, checklist):
            _decide(version, examine(), checklist)
    except FileRefused as refusal:
        facts = {"sha256": version.sha256, "checks": checklist.to_json()}
        _fail(version, checklist.lease, str(refusal), facts)
    is_due = version.state in (VersionState.FAILED, VersionState.VERIFYING)
    return clock.now() if is_due else version.deadline_at


class _FailOnUnexpected:
    """A context that fails the version on an unexpected error of its examination."""

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
        reason = "The file could not be read. Export the model again."
        # The checklist is not written: it may be the cause of the error.
        _fail(self._version, self._checklist.lease, reason, {"sha256": self._version.sha256})
        return True


def _decide(version: ModelVersion, result: ExaminationResult, checklist: Checklist) -> None:
    facts = result.columns | {"checks": checklist.to_json()}
    if result.is_waiting:
        cluster_load_test.begin(version, ExaminedVersion(**facts))
    elif result.quarantine_reason:
        transitions.to_quarantined(
            version=version,
            lease=checklist.lease,
            facts=facts,
            reason=result.quarantine_reason,
        )
    else:
        transitions.to_ready(version=version, lease=checklist.lease, facts=facts)


def _fail(version: ModelVersion, lease: Lease, reason: str, facts: Mapping[str, Any]) -> None:
    """Fail the verification. A version that was ready before becomes ready again: a declaration must not delete
    its bytes. Nor does a release.
    """
    if version.former:
        full_reason = (
            f"Verifying it with a new declaration failed: {reason} {transitions.AS_BEFORE}"
        )
        transitions.to_ready_again(version=version, reason=full_reason, lease=lease)
    elif version.release:
        full_reason = f"It was released, but cannot be served: {reason}"
        kept = {name: value for name, value in facts.items() if name == "checks"}
        transitions.to_quarantined(version=version, reason=full_reason, facts=kept, lease=lease)
    else:
        transitions.to_failed(version=version, reason=reason, facts=facts, lease=lease)


def _remove(version: ModelVersion) -> None:
    """Delete everything of a failed version from the store. Abort first, so that nothing is added."""
    store = object_store.store()
    if version.upload_prefix:
        root = object_keys.upload_root(version.upload_prefix)
        store.abort_uploads(root)
        store.delete_all_versions(root)
    store.delete_all_versions(
        object_keys.number_prefix(
            team=version.team.slug, model=version.model.name, number=version.number
        )
    )
    version.files.update(upload_id="", s3_version_id="")


def _end_release(version: ModelVersion, lease: Lease) -> None:
    """End a release from quarantine on time. Running deployments continue; new ones are refused."""
    ends_at = version.deadline_at
    if ends_at is not None and ends_at <= clock.now():
        transitions.to_archived(
            version=version, actor=SYSTEM, reason="The release from quarantine has ended."
        )
        ends_at = None
    leases.release(ModelVersion, lease, next_check_at=ends_at)
