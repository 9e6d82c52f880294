"""Record which chunks are done. What the store has is the truth; the rows follow it."""

from __future__ import annotations

from typing import Final

from django.db import transaction
from django.db.models import Sum

from deployments.batch.domain import marks, places
from deployments.batch.gateways.batch_store import BatchStore
from deployments.models import BatchJob
from portal.core import clock
from portal.core.definitions.counts import format_count

# Of one pass: reading them takes a few seconds.
_AT_MOST: Final = 300


def collect(job: BatchJob, store: BatchStore) -> str:
    """Count each chunk that workers finished once, however often it is repeated. Returns what is wrong with a mark,
    or nothing.
    """
    pending = {chunk.number: chunk for chunk in job.chunks.filter(done_at=None)}
    if not pending:
        return ""
    prefix = places.marks_prefix(job.pk)
    keys = store.list_keys(store.bucket, prefix, at_most=job.chunks.count())
    new = {number: key for key in keys if (number := places.number_of_mark(key)) in pending}
    read = []
    for number, key in sorted(new.items())[:_AT_MOST]:
        chunk = pending[number]
        mark = marks.parse(store.read(key, at_most=marks.MAX_BYTES), rows=chunk.rows)
        if mark is None:
            return f"What the worker says of part {number} does not match its {format_count(chunk.rows, 'row')}."
        read.append((chunk, mark))
    at = clock.now()
    with transaction.atomic():
        for chunk, mark in read:
            job.chunks.filter(pk=chunk.pk, done_at=None).update(
                done_at=at, failed_rows=mark.failed_rows
            )
        _sum_up(job, next((mark.error for _, mark in read if mark.error), ""))
    return ""


def missing_parts(job: BatchJob, store: BatchStore) -> list[int]:
    """Return the numbers of parts that are missing in the output."""
    output = places.read(job.output)
    count = job.chunks.count()
    keys = set(store.list_keys(output.bucket, f"{output.key}part-", at_most=count))
    return [n for n in range(count) if places.part_key(job.output, n) not in keys]


def _sum_up(job: BatchJob, error: str) -> None:
    done = job.chunks.exclude(done_at=None).aggregate(rows=Sum("rows"), failed=Sum("failed_rows"))
    job.done_rows, job.failed_rows = done["rows"] or 0, done["failed"] or 0
    job.first_error = job.first_error or error
    BatchJob.objects.filter(pk=job.pk).update(
        done_rows=job.done_rows, failed_rows=job.failed_rows, first_error=job.first_error
    )
