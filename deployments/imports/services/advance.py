"""Advance an import by one pass: list the source, copy what is missing, start the verification."""

from __future__ import annotations

import logging
import traceback
from contextlib import closing
from types import TracebackType
from typing import Final

from django.db import InterfaceError, OperationalError

from deployments.imports.domain.errors import SourceChanged, SourceRefused, SourceUnavailable
from deployments.imports.services import listing, sources, transitions
from deployments.imports.services.progress import LEASE_SECONDS, ImportProgress, PassOver, Stopped
from deployments.models import ArtifactFile, Import, ModelVersion
from deployments.registry.gateways import object_store
from deployments.registry.gateways.object_store import ArtifactError
from deployments.registry.services import uploads
from deployments.states import ImportState, VersionState
from portal.accounts.policy import SYSTEM
from portal.core import clock, leases
from portal.core.errors import DomainError, Unavailable
from portal.core.leases import Lease
from portal.core.wakeups import wake

logger = logging.getLogger(__name__)
_STORE_DOWN: Final = (
    "Object storage is not responding. Nothing is lost; the import continues when it does."
)
_UNEXPECTED: Final = (
    "The import stopped on an unexpected error. Resume it; if it fails again, ask a platform admin to "
    "check the worker logs."
)
_PASSING: Final = (SourceUnavailable, ArtifactError, Unavailable)
_EXPECTED: Final = (
    *_PASSING,
    DomainError,
    InterfaceError,
    OperationalError,
    SourceRefused,
    Stopped,
)
_LONGEST_WAIT_SECONDS: Final = 300


def sweep() -> None:
    """Start a task for each import that is due, so that a long one delays no other."""
    for import_id in leases.due(Import):
        wake(transitions.IMPORT_TASK, import_id)


def advance(import_id: int) -> None:
    """Advance the import by one pass, unless another worker holds its lease."""
    lease = leases.claim(Import, import_id, seconds=LEASE_SECONDS)
    if lease is None:
        return
    job = Import.objects.select_related("version__model__team").get(pk=import_id)
    progress = ImportProgress(job, lease)
    try:
        with _FailOnUnexpected(job, progress):
            _run(job, progress)
    except Stopped:
        _clean_up(job, progress.lease)
    except _PASSING as error:
        _retry_later(job, progress.lease, error)
    except (SourceRefused, DomainError) as error:
        is_outdated = isinstance(error, SourceChanged)
        fix = " Resume the import to list the source again." if is_outdated else ""
        _fail(job, progress.lease, error=f"{error}{fix}", is_outdated=is_outdated)
    except (OperationalError, InterfaceError):
        leases.back_off(Import, progress.lease)
        raise


class _FailOnUnexpected:
    """A context that fails the import on an error that is nobody's fault outside, so that it is not repeated
    for ever.
    """

    def __init__(self, job: Import, progress: ImportProgress) -> None:
        self._job, self._progress = job, progress

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None or not issubclass(kind, Exception) or issubclass(kind, _EXPECTED):
            return False
        # Without the message: it can name an address with a credential.
        frames = "".join(traceback.format_tb(trace))
        logger.error("import %s: %s\n%s", self._job.pk, kind.__name__, frames)
        _fail(self._job, self._progress.lease, error=_UNEXPECTED, is_outdated=False)
        return True


def _run(job: Import, progress: ImportProgress) -> None:
    if job.state in (ImportState.CANCELED, ImportState.DONE):
        leases.release(Import, progress.lease, next_check_at=None)
        return
    if job.version.state != VersionState.UPLOADING:
        _follow_version(job)
        return
    if job.state == ImportState.FAILED:
        leases.release(Import, progress.lease, next_check_at=transitions.expiry_of(job))
        return
    try:
        with closing(sources.open_source(job)) as source:
            if job.is_outdated:
                _forget_files(job)
            if not job.version.files.exists():
                listing.record(job, progress.lease, source, source.list_files(progress.keep_alive))
            _copy(job, source, progress)
    except PassOver:
        leases.release(Import, progress.lease, next_check_at=clock.now())
        wake(transitions.IMPORT_TASK, job.pk)
        return
    # Those that a worker opened and died before it recorded them.
    object_store.store().abort_uploads(job.version.upload_prefix)
    uploads.finish(job.version, actor=SYSTEM)
    _follow_version(job)


def _copy(job: Import, source: sources.ImportSource, progress: ImportProgress) -> None:
    files = list(job.version.files.select_related("origin"))
    stored = sum(file.size_bytes for file in files if file.s3_version_id)
    for file in files:
        if file.s3_version_id:
            continue
        # Its key is made from the version's prefix.
        file.version = job.version
        progress.set_copied(stored)
        source.copy(file, file.origin, progress)
        stored += file.size_bytes
        progress.set_copied(stored)
        progress.part_done()


def _follow_version(job: Import) -> None:
    """End the import as its version ended."""
    state = ModelVersion.objects.values_list("state", flat=True).get(pk=job.version_id)
    if state == VersionState.UPLOADING:
        raise Stopped
    if state == VersionState.FAILED:
        transitions.to_canceled(job, actor=SYSTEM, error=job.version.state_reason)
    else:
        transitions.to_done(job, copied_bytes=job.version.declared_size_bytes)


def _forget_files(job: Import) -> None:
    """Forget the files, because the source changed: start again, with nothing of what was copied before."""
    _delete_objects(job)
    ArtifactFile.objects.filter(version=job.version_id).delete()


def _clean_up(job: Import, lease: Lease) -> None:
    """Delete what was written after the version failed and its bytes were deleted."""
    logger.info("import %s was stopped, or taken over by another worker", job.pk)
    version = ModelVersion.objects.filter(pk=job.version_id).first()
    if version is None or version.state == VersionState.FAILED:
        _delete_objects(job)
        if version is not None and leases.is_held(Import, lease):
            job.version = version
            _follow_version(job)


def _delete_objects(job: Import) -> None:
    store = object_store.store()
    store.abort_uploads(job.version.upload_prefix)
    store.delete_all_versions(job.version.upload_prefix)


def _retry_later(job: Import, lease: Lease, error: Exception) -> None:
    is_source = isinstance(error, SourceUnavailable)
    message = f"{error} The import continues when it does." if is_source else _STORE_DOWN
    logger.warning("import %s: retrying later: %s", job.pk, type(error).__name__)
    Import.objects.filter(pk=job.pk, lease_token=lease.token).update(error=message)
    least = error.retry_after if isinstance(error, SourceUnavailable) else 0
    leases.back_off(
        Import,
        lease,
        cap_seconds=_LONGEST_WAIT_SECONDS,
        least_seconds=min(least, _LONGEST_WAIT_SECONDS),
    )


def _fail(job: Import, lease: Lease, *, error: str, is_outdated: bool) -> None:
    try:
        transitions.to_failed(job, lease, error=error, is_outdated=is_outdated)
    except DomainError:
        logger.info("import %s was ended by another", job.pk)
        return
    leases.release(Import, lease, next_check_at=job.next_check_at)
