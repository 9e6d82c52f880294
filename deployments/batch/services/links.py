"""Sign what workers may read and write: lists of chunks in the store, and their addresses in a Secret.

Addresses end with the credentials that signed them, which may be minutes, so all are signed anew while the
job runs. Each list has the address of its successor, so a pod needs the Secret only when it starts.
"""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, Final

from deployments.batch.domain import places
from deployments.batch.domain.chunks import InputFile
from deployments.batch.domain.settings import BatchSettings
from deployments.batch.gateways.batch_store import BatchStore
from deployments.models import BatchChunk, BatchJob

SECONDS: Final = 3600
RENEW_AFTER: Final = timedelta(minutes=4)
# A worker that has used up its list waits for the next one.
USED_UP_AFTER: Final = timedelta(seconds=20)
LISTED: Final = 200


def workers_of(job: BatchJob) -> int:
    """Return the number of workers. It is the same for each attempt: a chunk belongs to the worker of its number
    modulo this.
    """
    return min(BatchSettings.from_json(job.pods).workers, max(1, job.chunks.count()))


def write_lists(job: BatchJob, store: BatchStore) -> dict[int, str]:
    """Write each worker's list and return its address by index. Repeating it only renews the addresses."""
    files = [InputFile(**row) for row in job.files]
    urls = [store.url_of_input(file, seconds=SECONDS) for file in files]
    pending = list(job.chunks.filter(done_at=None).order_by("number"))
    workers = workers_of(job)
    addresses = {}
    for worker in range(workers):
        own = [chunk for chunk in pending if chunk.number % workers == worker]
        key = places.list_key(job.pk, job.attempt, worker)
        addresses[worker] = store.url_to_read(key, seconds=SECONDS)
        work = {
            "self": addresses[worker],
            "more": len(own) > LISTED,
            "chunks": [
                _entry(job, chunk, store, urls[chunk.file], files[chunk.file])
                for chunk in own[:LISTED]
            ],
        }
        store.put(key, json.dumps(work).encode())
    return addresses


def _entry(
    job: BatchJob, chunk: BatchChunk, store: BatchStore, url: str, file: InputFile
) -> dict[str, Any]:
    mark = places.mark_key(job.pk, chunk.number)
    return {
        "n": chunk.number,
        "file": url,
        "headers": {"If-Match": file.etag},
        "start": chunk.start,
        "end": chunk.end,
        "rows": chunk.rows,
        "first": chunk.first_row,
        "columns": file.columns,
        "line": chunk.first_line,
        "put": store.url_to_create(places.part_key(job.output, chunk.number), seconds=SECONDS),
        "mark": store.url_to_create(mark, seconds=SECONDS),
        "seen": store.url_to_read(mark, seconds=SECONDS),
    }
