"""Parts that a worker wrote and did not report: it died in between, and no message brings another worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from deployments.batch.domain import places, reports
from deployments.batch.gateways.batch_store import BatchStore, StoredFile
from deployments.models import BatchJob
from portal.core import clock

# A worker that lives reports a part at once. One that reports later is not counted twice.
PATIENCE: Final = timedelta(minutes=1)
# Of one pass: each gap costs a request, each part is read.
_GAPS: Final = 20
_PARTS: Final = 20
# A worker writes a part of 16 MiB or little more.
_MAX_BYTES: Final = 256 << 20


@dataclass(frozen=True, slots=True)
class UnreportedPart:
    number: int
    rows: int


def find(job: BatchJob, store: BatchStore, *, has_workers: bool) -> list[UnreportedPart]:
    """Find unreported parts in the order of their numbers. While there are workers, only those written over a
    minute ago.
    """
    if not job.output.startswith(places.S3):
        return []
    newest = clock.now() - PATIENCE
    parts: list[UnreportedPart] = []
    for number, part in _candidates(job, store):
        if has_workers and part.written_at > newest:
            continue
        if part.size_bytes <= _MAX_BYTES:
            parts.append(UnreportedPart(number, store.count_lines(part)))
        if len(parts) >= _PARTS:
            break
    return parts


def _candidates(job: BatchJob, store: BatchStore) -> Iterator[tuple[int, StoredFile]]:
    """Yield the newest gaps, where a worker may still be writing or never will, and what follows the last known
    part.
    """
    next_part = reports.read_drained(job.drained).next_part
    known = set(job.chunks.values_list("number", flat=True))
    gaps = [number for number in range(next_part) if number not in known][-_GAPS:]
    for number in gaps:
        if part := store.find_part(places.part_key(job.output, number)):
            yield number, part
    number = next_part
    while part := store.find_part(places.part_key(job.output, number)):
        yield number, part
        number += 1
