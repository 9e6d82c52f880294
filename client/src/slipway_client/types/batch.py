"""Batch jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob(Answer):
    """A batch job. `total_rows` is None until the input was read, and of a job that drains a queue; `cost_limit`
    where a price is not known. `failed_rows` of the done ones have no answer.
    """

    id: int
    team: str
    name: str
    version: str
    cluster: str
    state: str
    state_reason: str
    input: str
    output: str
    requester: str
    is_queue: bool
    total_rows: int | None
    done_rows: int
    failed_rows: int
    cost_limit: Decimal | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None

    def __str__(self) -> str:
        return f"batch job {self.team}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchQueue(Answer):
    """Messages: `waiting` at `waiting_at` (None: not known), `retried` tries after the first."""

    waiting: int | None
    waiting_at: datetime | None
    answered: int
    dead_letters: int
    retried: int
    group: str
    dead_letters_in: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJobDetails(BatchJob):
    """A batch job with all its details. `spent` is None where it is not known; `forecast` and `done_at` are at this
    rate. `why_not_decide` is empty where you may approve or reject it.
    """

    detail: str
    first_error: str
    queue: BatchQueue | None
    chunks: int
    done_chunks: int
    why_not_decide: str
    spent: Decimal | None
    forecast: Decimal | None
    done_at: datetime | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPrice(Answer):
    """The price of all workers. None means that a price is unknown."""

    per_hour: Decimal | None
    cost_limit: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchEstimate(BatchPrice):
    """An estimate of a batch job before it starts. `fits_now` is None where it waits for nodes; `why_approval` is
    empty where it starts at once.
    """

    spot: BatchPrice
    on_demand: BatchPrice
    fits_now: bool | None
    capacity: str
    why_approval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchUpload(Answer):
    """An uploaded file of rows. `input` is the input of a job, once it is complete."""

    id: int
    team: str
    path: str
    size_bytes: int
    input: str
    is_complete: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchPart(Answer):
    """A finished part of the output; `url` is for GET, without a token, and ends after 15 minutes."""

    number: int
    first_row: int
    rows: int
    failed_rows: int
    url: str
