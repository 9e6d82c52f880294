"""Drift of a deployment: edits made on its cluster, and whether they are reverted or await a
review.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from deployments.delivery.domain.edits import Edit
from deployments.states import DriftPolicy
from fleet.observation.domain.parse import parse_time

# After this many reverts within the window another tool keeps writing the field.
MAX_REVERTS: Final = 3
REVERT_WINDOW: Final = timedelta(minutes=10)
_MAX_STORED_EDITS: Final = 20
_MAX_DESCRIBED_EDITS: Final = 3


class DriftOutcome(StrEnum):
    """The outcome for drift, with the values of the REST API."""

    NONE = ""
    REVERTED = "reverted"
    # Awaits a decision: re-apply or adopt.
    PENDING = "pending"


@dataclass(frozen=True, slots=True)
class Drift:
    """The model of the column `Deployment.drift`. `reverts` counts the reverts since `since`."""

    outcome: DriftOutcome = DriftOutcome.NONE
    edits: tuple[Edit, ...] = ()
    detected_at: datetime | None = None
    since: datetime | None = None
    reverts: int = 0

    @property
    def is_reverted_repeatedly(self) -> bool:
        return self.reverts >= MAX_REVERTS

    @property
    def description(self) -> str:
        described = "; ".join(edit.description for edit in self.edits[:_MAX_DESCRIBED_EDITS])
        more = len(self.edits) - _MAX_DESCRIBED_EDITS
        return f"{described} and {more} more" if more > 0 else described

    @property
    def reason(self) -> str:
        """The deployment's state reason while the drift is pending. Empty otherwise."""
        if self.outcome != DriftOutcome.PENDING:
            return ""
        if self.is_reverted_repeatedly:
            times = f"reverted {self.reverts} times"
            return f"edited repeatedly on the cluster, {times}: {self.description}"
        return f"edited on the cluster, held for review: {self.description}"

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Drift:
        if not data:
            return cls()
        return cls(
            outcome=DriftOutcome(data["outcome"]),
            edits=tuple(Edit(**edit) for edit in data["edits"]),
            detected_at=parse_time(data["detected_at"]),
            since=parse_time(data["since"]),
            reverts=data["reverts"],
        )

    def to_json(self) -> dict[str, Any]:
        if self.outcome == DriftOutcome.NONE:
            return {}
        return {
            "outcome": self.outcome.value,
            "edits": [edit.to_json() for edit in self.edits[:_MAX_STORED_EDITS]],
            "detected_at": self.detected_at.isoformat() if self.detected_at else None,
            "since": self.since.isoformat() if self.since else None,
            "reverts": self.reverts,
        }


def assess_drift(
    before: Drift,
    edits: Sequence[Edit],
    *,
    policy: DriftPolicy,
    is_revert_requested: bool,
    at: datetime,
) -> Drift:
    """Decide about the edits of this pass. Deleted objects are always created again: there is
    nothing to adopt, and the deployment would not serve.
    """
    if not edits:
        is_over = before.outcome == DriftOutcome.PENDING
        return Drift() if is_over else before
    has_only_deletions = all(not edit.path for edit in edits)
    is_recent = before.since is not None and at - before.since < REVERT_WINDOW
    reverts, since = (before.reverts, before.since) if is_recent else (0, at)
    needs_review = policy == DriftPolicy.HOLD or reverts >= MAX_REVERTS
    if needs_review and not is_revert_requested and not has_only_deletions:
        if before.outcome == DriftOutcome.PENDING and before.edits == tuple(
            edits[:_MAX_STORED_EDITS]
        ):
            return before
        return Drift(DriftOutcome.PENDING, tuple(edits), at, since, reverts)
    reverts = 0 if is_revert_requested else reverts
    return Drift(DriftOutcome.REVERTED, tuple(edits), at, since, reverts + 1)
