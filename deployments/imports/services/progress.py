"""The progress of an import: a worker that copies renews its lease, counts bytes, and notices a cancel."""

from __future__ import annotations

import time
from datetime import timedelta
from typing import Final

from deployments.models import Import, ModelVersion
from deployments.registry.services import uploads
from deployments.states import ImportState, VersionState
from portal.core import clock, leases
from portal.core.leases import Lease

LEASE_SECONDS: Final = 120
# Of one pass; the rest follows in the next, so that other work of the queue has its turn.
PASS_SECONDS: Final = 120
_RENEW_EVERY: Final = timedelta(seconds=20)
_WRITE_EVERY_SECONDS: Final = 1.0


class Stopped(Exception):
    """The import was canceled, its version ended, or another worker has the lease. Write nothing."""


class PassOver(Exception):
    """The time of this pass is used up."""


class ImportProgress:
    def __init__(self, job: Import, lease: Lease) -> None:
        self.lease = lease
        self._job = job
        self._copied = 0
        self._renewed_at = clock.now()
        self._written_at = 0.0
        self._ends_at = time.monotonic() + PASS_SECONDS

    def keep_alive(self) -> None:
        """Call often. Raises Stopped."""
        if time.monotonic() - self._written_at >= _WRITE_EVERY_SECONDS:
            self.write()

    def set_copied(self, total_bytes: int) -> None:
        """Set the number of bytes that are stored, of all files."""
        self._copied = total_bytes

    def add(self, count: int) -> None:
        self._copied += count
        self.keep_alive()

    def part_done(self) -> None:
        """Store the progress between two parts, where nothing is lost. Raises Stopped and PassOver."""
        self.write(check_failures=0)
        uploads.extend(self._job.version)
        if time.monotonic() > self._ends_at:
            raise PassOver

    def write(self, **fields: int) -> None:
        self._written_at = time.monotonic()
        held = Import.objects.filter(
            pk=self._job.pk, state=ImportState.RUNNING, lease_token=self.lease.token
        )
        is_open = ModelVersion.objects.filter(
            pk=self._job.version_id, state=VersionState.UPLOADING
        ).exists()
        if not is_open or held.update(copied_bytes=self._copied, error="", **fields) == 0:
            raise Stopped
        if clock.now() - self._renewed_at > _RENEW_EVERY:
            renewed = leases.renew(Import, self.lease, seconds=LEASE_SECONDS)
            if renewed is None:
                raise Stopped
            self.lease, self._renewed_at = renewed, clock.now()
