"""Batch jobs: score files of rows with a model version, follow, cancel and resume."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx

from slipway_client import downloads, waiting
from slipway_client.connection import Connection, RetryPolicy
from slipway_client.decoding import decode
from slipway_client.errors import Failed
from slipway_client.types import BatchEstimate, BatchJob, BatchJobDetails, BatchPart, BatchUpload
from slipway_client.uploads.progress import Progress, Silent
from slipway_client.uploads.push import PATIENT
from slipway_client.uploads.rows import RowsUpload

_ENDED = ("succeeded", "failed", "canceled", "rejected")


class BatchJobs:
    def __init__(
        self,
        connection: Connection,
        *,
        retry: RetryPolicy | None = None,
        store_transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._connection = connection
        self._retry = retry
        self._store_transport = store_transport

    def start(self, **fields: Any) -> BatchJobDetails:
        """Start a batch job. The fields of the request are team, name, model, version (its number), cluster, input,
        output and instance_type; also gpu_resource, capacity, workers, requests, hours, error_limit, cpu and
        memory.
        """
        return decode(BatchJobDetails, self._connection.post("batch-jobs", fields))

    def check(self, **fields: Any) -> BatchEstimate:
        """Check a batch job in a dry run with the fields of `start`: raises what it would raise, and stores nothing."""
        return decode(BatchEstimate, self._connection.post("batch-jobs/check", fields))

    def get(self, job: int) -> BatchJobDetails:
        return decode(BatchJobDetails, self._connection.get(f"batch-jobs/{job}"))

    def list(self, *, team: str = "", state: str = "") -> Iterator[BatchJob]:
        """Iterate over your teams' batch jobs, newest first."""
        pages = self._connection.pages("batch-jobs", {"team": team, "state": state})
        return (decode(BatchJob, row) for row in pages)

    def cancel(self, job: int, *, reason: str = "") -> BatchJobDetails:
        """Cancel a batch job. Finished parts of the output stay."""
        body = {"reason": reason}
        return decode(BatchJobDetails, self._connection.post(f"batch-jobs/{job}/cancel", body))

    def resume(self, job: int) -> BatchJobDetails:
        """Start a failed one again, for the rows that are not done."""
        return decode(BatchJobDetails, self._connection.post(f"batch-jobs/{job}/resume"))

    def parts(self, job: int) -> Iterator[BatchPart]:
        """Iterate over the finished parts, in the order of the rows."""
        return (decode(BatchPart, row) for row in self._connection.pages(f"batch-jobs/{job}/parts"))

    def download(self, job: int, target: str | Path) -> int:
        """Download the finished parts into one new file, in the order of the rows. Returns their number."""
        return downloads.save(
            self.parts(job),
            Path(target),
            lambda number: next(part for part in self.parts(job) if part.number == number),
            transport=self._store_transport,
        )

    def upload(
        self, path: str | Path, team: str, *, progress: Progress | None = None
    ) -> BatchUpload:
        """Send a file of JSON lines or CSV to the team's area; its `input` is the input of a job."""
        retry = self._retry or PATIENT
        upload = RowsUpload(self._connection, progress or Silent(), retry, self._store_transport)
        with self._connection.with_retry(retry):
            return upload.run(Path(path), team)

    def approve(self, job: int, *, comment: str = "") -> BatchJobDetails:
        """Approve somebody else's batch job that the budget has no room for."""
        body = {"comment": comment}
        return decode(BatchJobDetails, self._connection.post(f"batch-jobs/{job}/approve", body))

    def reject(self, job: int, *, comment: str) -> BatchJobDetails:
        body = {"comment": comment}
        return decode(BatchJobDetails, self._connection.post(f"batch-jobs/{job}/reject", body))

    def wait(
        self,
        job: int,
        *,
        seconds: float = 86_400,
        on_change: Callable[[BatchJobDetails], None] | None = None,
    ) -> BatchJobDetails:
        """Wait until the job has ended. Raises Failed with the reason unless it has succeeded."""
        ended = waiting.wait_for(
            lambda: self.get(job),
            lambda current: current.state in _ENDED,
            seconds=seconds,
            describe=lambda current: f"the {current} is {current.state}. {current.detail}".strip(),
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != "succeeded":
            raise Failed(f"The {ended} is {ended.state}: {ended.state_reason}")
        return ended
