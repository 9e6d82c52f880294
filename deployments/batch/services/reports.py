"""Add up what workers of a queue report, and sign where they write. Each call can be repeated."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final

from django.db import transaction

from deployments.batch.domain import places, queues, reports
from deployments.batch.domain.reports import Drained, Report
from deployments.batch.gateways.batch_store import BatchStore
from deployments.batch.services import links, unreported
from deployments.models import BatchChunk, BatchJob
from deployments.registry.gateways.object_store import ObjectMissing
from portal.core import clock, leases
from portal.core.leases import Lease

# Of one pass: reading them takes a few seconds.
_AT_MOST: Final = 200
# Addresses of each kind that workers have at a time.
LISTED: Final = 200
_USED_UP: Final = 100
_ANSWERS: Final = "parts"


def collect(job: BatchJob, lease: Lease, store: BatchStore) -> None:
    """Add up new reports in the order of their numbers; the row stores how far, so that each counts once.

    Raises Conflict if another worker took over.
    """
    drained = reports.read_drained(job.drained)
    read: list[Report] = []
    number = drained.reports
    while len(read) < _AT_MOST:
        try:
            body = store.read(places.report_key(job.pk, number), at_most=reports.MAX_BYTES)
        except ObjectMissing:
            break
        number += 1
        # One that no worker of ours wrote counts nothing.
        if report := reports.parse(body):
            read.append(report)
    if number > drained.reports:
        _add(job, lease, replace(drained, reports=number), read)


def adopt(job: BatchJob, lease: Lease, store: BatchStore, *, has_workers: bool) -> bool:
    """Count some of the parts whose worker died before it reported them. False if there are none.

    Reports that still come for them add nothing. Raises Conflict if another worker took over.
    """
    drained = reports.read_drained(job.drained)
    chunks = []
    for part in unreported.find(job, store, has_workers=has_workers):
        chunks.append(_chunk_of(job, part.number, part.rows, job.done_rows + 1))
        job.done_rows += part.rows
        drained = replace(
            drained,
            next_part=max(drained.next_part, part.number + 1),
            adopted=(*drained.adopted, part.number)[-LISTED:],
        )
    if chunks:
        _save(job, lease, drained, chunks)
    return bool(chunks)


def _add(job: BatchJob, lease: Lease, drained: Drained, read: list[Report]) -> None:
    at = clock.now()
    chunks = []
    known = _reported_before(job, read)
    for each in read:
        report = each
        if each.part in known:
            # The worker that wrote it, and one that found it without a report.
            own = max(0, each.answered - each.rows)
            report = replace(each, answered=own, part=None)
        elif each.part is not None:
            known.add(each.part)
        job.done_rows += report.answered + report.dead
        job.failed_rows += report.dead
        job.first_error = job.first_error or report.error
        drained = replace(
            drained,
            retried=drained.retried + report.retried,
            waiting=report.waiting,
            waiting_at=at.isoformat(),
        )
        if report.part is not None:
            first = job.done_rows - report.answered - report.dead + 1
            chunks.append(_chunk_of(job, report.part, report.rows, first))
            drained = replace(drained, next_part=max(drained.next_part, report.part + 1))
    named = {report.part for report in read}
    adopted = tuple(number for number in drained.adopted if number not in named)
    _save(job, lease, replace(drained, adopted=adopted), chunks)


def _save(job: BatchJob, lease: Lease, drained: Drained, chunks: list[BatchChunk]) -> None:
    job.drained = drained.to_json()
    with transaction.atomic():
        held = BatchJob.objects.filter(pk=job.pk, lease_token=lease.token)
        if not held.update(
            done_rows=job.done_rows,
            failed_rows=job.failed_rows,
            first_error=job.first_error,
            drained=job.drained,
        ):
            raise leases.build_lost_error(job)
        BatchChunk.objects.bulk_create(chunks, ignore_conflicts=True)


def _reported_before(job: BatchJob, read: list[Report]) -> set[int]:
    numbers = [report.part for report in read if report.part is not None]
    return set(job.chunks.filter(number__in=numbers).values_list("number", flat=True))


def _chunk_of(job: BatchJob, number: int, rows: int, first: int) -> BatchChunk:
    """Build the row of a part of the output that belongs to no part of an input."""
    return BatchChunk(
        job=job,
        number=number,
        file=0,
        start=0,
        end=0,
        rows=rows,
        first_row=first,
        done_at=clock.now(),
    )


def needs_addresses(job: BatchJob) -> bool:
    if job.signed_at is None:
        return True
    age: timedelta = clock.now() - job.signed_at
    drained = reports.read_drained(job.drained)
    is_used_up = drained.reports - drained.signed >= _USED_UP
    return age >= links.RENEW_AFTER or (is_used_up and age >= links.USED_UP_AFTER)


def write_list(job: BatchJob, store: BatchStore) -> dict[int, str]:
    """Write the list of all workers and return its address, by index 0.

    `job.drained` then says how far it was signed; save it.
    """
    drained = reports.read_drained(job.drained)
    key = places.list_key(job.pk, job.attempt, 0)
    address = store.url_to_read(key, seconds=links.SECONDS)
    first = drained.reports
    work: dict[str, Any] = {
        "self": address,
        "reports": [
            _entry(store, n, places.report_key(job.pk, n)) for n in range(first, first + LISTED)
        ],
        _ANSWERS: [],
        "unreported": [],
        **_library(job, store),
    }
    if job.output.startswith(places.S3):
        part = drained.next_part
        work[_ANSWERS] = [
            {**_entry(store, n, places.part_key(job.output, n)), **_readable(store, job, n)}
            for n in range(part, part + LISTED)
        ]
        reported = set(job.chunks.values_list("number", flat=True))
        missing = sorted({*range(part)} - reported | {*drained.adopted})
        work["unreported"] = [_readable(store, job, n) for n in missing[-LISTED:]]
    store.put(key, json.dumps(work).encode())
    job.drained = replace(drained, signed=first).to_json()
    return {0: address}


def _entry(store: BatchStore, number: int, key: str) -> dict[str, Any]:
    return {"n": number, "put": store.url_to_create(key, seconds=links.SECONDS)}


def _library(job: BatchJob, store: BatchStore) -> dict[str, str]:
    """Store the library once per attempt, whose plan names its digest, and return its signed address. Empty if the
    kind of queue needs none.
    """
    library = queues.kind_of(job.input).library()
    if library is None:
        return {}
    key = places.library_key(job.pk, job.attempt)
    if store.find(store.bucket, key) is None:
        store.put(key, library.archive)
    return {"library": store.url_to_read(key, seconds=links.SECONDS)}


def _readable(store: BatchStore, job: BatchJob, number: int) -> dict[str, Any]:
    """Return the address of a part whose worker may have died before it reported."""
    key = places.part_key(job.output, number)
    return {"n": number, "get": store.url_to_read(key, seconds=links.SECONDS)}
