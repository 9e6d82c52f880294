"""States of a batch job and their legal transitions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final


class BatchState(StrEnum):
    # The input is read and cut into chunks.
    PLANNING = "planning"
    # Planned; it costs more than the budget has left, or the cost is not known.
    SUBMITTED = "submitted"
    RUNNING = "running"
    # Job and links are removed; the row says in which state that ends.
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    # Finished chunks are kept: it can be resumed.
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"


_S = BatchState
TRANSITIONS: Final[Mapping[BatchState, frozenset[BatchState]]] = {
    _S.PLANNING: frozenset({_S.SUBMITTED, _S.RUNNING, _S.FAILED, _S.CANCELED}),
    _S.SUBMITTED: frozenset({_S.RUNNING, _S.REJECTED, _S.FAILED, _S.CANCELED}),
    _S.RUNNING: frozenset({_S.STOPPING}),
    _S.STOPPING: frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELED}),
    _S.FAILED: frozenset({_S.RUNNING, _S.SUBMITTED}),
    # Only one that drains a queue, which goes on with what came since.
    _S.SUCCEEDED: frozenset({_S.RUNNING, _S.SUBMITTED}),
    _S.CANCELED: frozenset(),
    _S.REJECTED: frozenset(),
}
FINAL: Final = frozenset({_S.SUCCEEDED, _S.FAILED, _S.CANCELED, _S.REJECTED})
PLANNING_FOR: Final = timedelta(hours=2)
SUBMITTED_FOR: Final = timedelta(days=7)
STOPPING_FOR: Final = timedelta(hours=1)
# After the Job's own deadline, for a cluster that is away.
GRACE: Final = timedelta(minutes=10)
