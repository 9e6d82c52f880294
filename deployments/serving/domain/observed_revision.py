"""The last observed state of a revision on the cluster. The column `Deployment.observed` holds one per
revision, keyed by "r1".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from deployments.serving.domain.queue_state import QUEUED, QueueState

MISSING: Final = "missing"


@dataclass(frozen=True, slots=True)
class ObservedRevision:
    """The observed state of a revision. `stage` is one of deployments.delivery.domain.progress.STAGES.
    `is_ready` and `weight` are None while they are not known. `since` is when `is_ready` became what it is.
    """

    stage: str = MISSING
    reason: str = ""
    message: str = ""
    is_failing: bool = False
    is_ready: bool | None = None
    # Percent of requests that the gateway sends to it.
    weight: int | None = None
    since: datetime | None = None
    # Of a revision that names a queue.
    queue: QueueState | None = None

    @classmethod
    def from_column(cls, column: Mapping[str, Any], number: int) -> ObservedRevision:
        """Return the stored observation; without values for a revision that was never observed."""
        data = column.get(f"r{number}")
        if data is None:
            return cls()
        return cls(
            stage=data["stage"],
            reason=data["reason"],
            message=data["message"],
            is_failing=data["is_failing"],
            is_ready=data["ready"],
            weight=data["weight"],
            since=datetime.fromisoformat(data["since"]),
            queue=QueueState.from_json(data.get("queue")),
        )

    @property
    def is_queued(self) -> bool:
        """Whether it is not ready because pods wait in a queue."""
        return self.reason == QUEUED

    @property
    def exists(self) -> bool:
        """Whether the cluster had its workload."""
        return self.stage != MISSING

    def to_json(self) -> dict[str, Any]:
        return {
            "stage": self.stage,
            "reason": self.reason,
            "message": self.message,
            "is_failing": self.is_failing,
            "ready": self.is_ready,
            "weight": self.weight,
            "since": self.since.isoformat() if self.since else None,
            "queue": self.queue.to_json() if self.queue else None,
        }


def to_column(by_number: Mapping[int, ObservedRevision]) -> dict[str, Any]:
    return {f"r{number}": observed.to_json() for number, observed in by_number.items()}
