"""Batch jobs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchJob(Answer):
    """`total_rows` is None until the input was read, `cost_limit` where a price is not known. `failed_rows`
    of the done ones have no answer.
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
class BatchJobDetails(BatchJob):
    """`spent` is None where it is not known; `forecast` and `done_at` are at this rate."""

    detail: str
    first_error: str
    chunks: int
    done_chunks: int
    spent: Decimal | None
    forecast: Decimal | None
    done_at: datetime | None
