"""Read the input once: which versions of which files, and where the rows of each chunk are."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from django.db import transaction

from deployments.batch.domain import chunks, csv_files, places
from deployments.batch.domain.chunks import Chunk, InputFile
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.domain.states import BatchState
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.services import audit_actions, limits, requests, transitions
from deployments.models import BatchChunk, BatchJob
from deployments.registry.domain import signatures
from deployments.registry.gateways.object_store import ArtifactError, StoreRefused, StoreUnreachable
from portal.accounts.policy import SYSTEM
from portal.core import leases
from portal.core.definitions import Rejected
from portal.core.errors import Invalid
from portal.core.leases import Lease

LEASE_SECONDS: Final = 120
_RENEW_SECONDS: Final = 20
_GIB: Final = 2**30


class Lost(Exception):
    """Another worker has the lease, or the job was canceled. Write nothing."""


def plan(job: BatchJob, lease: Lease) -> None:
    """Plan the job; what is wrong with the input fails it. Raises Lost, and StoreUnreachable for another try."""
    try:
        _plan(job, lease)
    except StoreUnreachable:
        raise
    except StoreRefused as error:
        fail(job, f"The store refuses to give {job.input}: {error}")
    except (Rejected, Invalid, ArtifactError) as error:
        fail(job, str(getattr(error, "message", error)))


def fail(job: BatchJob, reason: str) -> None:
    transitions.move(
        actor=SYSTEM, job=job, to=BatchState.FAILED, audited=audit_actions.FAILED, reason=reason
    )


def _plan(job: BatchJob, lease: Lease) -> None:
    store = BatchStore()
    pods = BatchSettings.from_json(job.pods)
    if job.is_queue:
        _require_empty(job, store)
        allowed = limits.check(job.team, job.cluster_id, pods, without=job)
        requests.start_or_submit(SYSTEM, job, allowed, audited=audit_actions.PLANNED)
        return
    files = _files(store, job)
    files, rows = _Reader(job, store, pods, _KeepAlive(lease)).read(files)
    if not rows:
        raise _rejected(f"{job.input} has no rows. Each line of its files is one row.")
    _require_empty(job, store)
    allowed = limits.check(job.team, job.cluster_id, pods, without=job)
    with transaction.atomic():
        # What a worker that died here had written is planned anew.
        job.chunks.all().delete()
        BatchChunk.objects.bulk_create(
            [
                BatchChunk(
                    job=job,
                    number=number,
                    file=chunk.file,
                    start=chunk.start,
                    end=chunk.end,
                    rows=chunk.rows,
                    first_row=chunk.first_row,
                    first_line=chunk.first_line,
                )
                for number, chunk in enumerate(rows)
            ],
            batch_size=1000,
        )
        job.files = [file.to_json() for file in files]
        job.total_rows = sum(chunk.rows for chunk in rows)
        job.total_bytes = sum(file.size_bytes for file in files)
        held = BatchJob.objects.filter(pk=job.pk, lease_token=lease.token)
        if not held.update(files=job.files, total_rows=job.total_rows, total_bytes=job.total_bytes):
            raise Lost
        requests.start_or_submit(SYSTEM, job, allowed, audited=audit_actions.PLANNED)


def _require_empty(job: BatchJob, store: BatchStore) -> None:
    output = places.read(job.output)
    if job.output.startswith(places.S3) and store.list_keys(output.bucket, output.key, at_most=0):
        raise _rejected(f"{job.output} has files already. Choose an empty prefix.")


def _rejected(problem: str) -> Rejected:
    return Rejected(problem, {"input": problem})


def _files(store: BatchStore, job: BatchJob) -> list[InputFile]:
    source = places.read(job.input)
    keys = [source.key]
    if places.is_prefix(source):
        keys = store.list_keys(source.bucket, source.key, at_most=chunks.MAX_FILES)
    if len(keys) > chunks.MAX_FILES:
        raise _rejected(f"{job.input} has more than {chunks.MAX_FILES:,} files. Join some of them.")
    objects = [store.find(source.bucket, key) for key in keys]
    files = [file for file in objects if file is not None]
    if not files or len(files) < len(keys):
        raise _rejected(f"There is no file at {job.input}. Check the address.")
    total = sum(file.size_bytes for file in files)
    if total > chunks.MAX_TOTAL_BYTES:
        raise _rejected(
            f"{job.input} has {total / _GIB:,.1f} GiB; the most is {chunks.MAX_TOTAL_BYTES // _GIB} GiB. Split "
            "it into several jobs."
        )
    return files


class _Reader:
    """A reader of all files of a job, once, in their order."""

    def __init__(
        self, job: BatchJob, store: BatchStore, settings: BatchSettings, keep_alive: _KeepAlive
    ) -> None:
        self._store, self._workers, self._keep_alive = store, settings.workers, keep_alive
        self._version = job.version
        self._first_rows = csv_files.FirstRows(error_limit=settings.error_limit)

    def read(self, files: list[InputFile]) -> tuple[list[InputFile], list[Chunk]]:
        """Return the files, with the columns of those that are CSV, and all chunks."""
        total = sum(file.size_bytes for file in files)
        target = chunks.chunk_bytes(total, workers=self._workers)
        found, cut = [], list[Chunk]()
        row = 1
        for index, file in enumerate(files):
            lines = chunks.lines(self._blocks(file), file.key)
            columns, header, records = self._records(file, lines)
            found.append(replace(file, columns=columns))
            for chunk in chunks.cut(
                records, file=index, first_row=row, target_bytes=target, header=header
            ):
                row = chunk.first_row + chunk.rows
                cut.append(chunk)
                if len(cut) > chunks.MAX_CHUNKS:
                    raise _rejected(
                        f"The input has more than {row:,} rows, which are too many for one job. Split it."
                    )
        return found, cut

    def _blocks(self, file: InputFile) -> Iterator[bytes]:
        if not file.size_bytes:
            return iter(())
        return self._keep_alive.during(self._store.blocks(file))

    def _records(
        self, file: InputFile, lines: Iterator[bytes]
    ) -> tuple[list[list[Any]], bytes, Iterator[bytes]]:
        """Return the columns and the header of CSV, and the records that follow."""
        if places.kind_of(file.key) != places.CSV:
            return [], b"", lines
        records = csv_files.records(lines, file.key)
        _, header = next(records, (1, b""))
        if not header.strip():
            raise _rejected(f"Line 1 of {file.key} is empty. It must name the columns.")
        columns = csv_files.columns_of(
            header,
            signatures.from_json(self._version.signature),
            name=file.key,
            version=self._version.label,
        )
        return columns, header, self._first_rows.check_first(records, columns, name=file.key)


class _KeepAlive:
    def __init__(self, lease: Lease) -> None:
        self._lease, self._renewed_at = lease, time.monotonic()

    def during(self, blocks: Iterator[bytes]) -> Iterator[bytes]:
        for block in blocks:
            yield block
            if time.monotonic() - self._renewed_at > _RENEW_SECONDS:
                renewed = leases.renew(BatchJob, self._lease, seconds=LEASE_SECONDS)
                if renewed is None:
                    raise Lost
                self._lease, self._renewed_at = renewed, time.monotonic()
