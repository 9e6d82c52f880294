"""What was found edited on the cluster, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final

from deployments.delivery.domain.edits import Edit
from deployments.states import DriftPolicy

# Put right so often within the time, someone else's tool writes it again and again.
MOST_HEALS: Final = 3
FIGHT: Final = timedelta(minutes=10)
_MOST_TOLD: Final = 20


class Outcome(StrEnum):
    NONE = ""
    HEALED = "healed"
    # Waits for a choice: re-apply or adopt.
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Drift:
    """`heals` counts how often it was put right since `since`."""

    outcome: Outcome = Outcome.NONE
    edits: tuple[Edit, ...] = ()
    found_at: datetime | None = None
    since: datetime | None = None
    heals: int = 0

    @property
    def is_reverted_repeatedly(self) -> bool:
        return self.heals >= MOST_HEALS

    @property
    def words(self) -> str:
        told = "; ".join(edit.words for edit in self.edits[:3])
        rest = f" and {len(self.edits) - 3} more" if len(self.edits) > 3 else ""
        return told + rest

    @property
    def reason(self) -> str:
        """For the state of the deployment while it is held; empty otherwise."""
        if self.outcome != Outcome.HELD:
            return ""
        if self.is_reverted_repeatedly:
            return f"edited repeatedly on the cluster, reverted {self.heals} times: {self.words}"
        return f"edited on the cluster, held for review: {self.words}"

    def to_json(self) -> dict[str, Any]:
        if self.outcome == Outcome.NONE:
            return {}
        return {
            "outcome": self.outcome.value,
            "edits": [edit.to_json() for edit in self.edits[:_MOST_TOLD]],
            "found_at": self.found_at.isoformat() if self.found_at else None,
            "since": self.since.isoformat() if self.since else None,
            "heals": self.heals,
        }


def from_json(data: Mapping[str, Any]) -> Drift:
    if not data:
        return Drift()
    return Drift(
        outcome=Outcome(data["outcome"]),
        edits=tuple(Edit(**edit) for edit in data["edits"]),
        found_at=_moment(data["found_at"]),
        since=_moment(data["since"]),
        heals=data["heals"],
    )


def judge(
    before: Drift,
    edits: Sequence[Edit],
    *,
    policy: DriftPolicy,
    is_heal_wanted: bool,
    at: datetime,
) -> Drift:
    """What to do about what differs now. What was deleted is always made again: there is nothing to
    adopt, and the deployment would not serve.
    """
    if not edits:
        is_over = before.outcome == Outcome.HELD
        return Drift() if is_over else before
    is_only_deleted = all(not edit.path for edit in edits)
    is_recent = before.since is not None and at - before.since < FIGHT
    heals, since = (before.heals, before.since) if is_recent else (0, at)
    must_ask = policy == DriftPolicy.HOLD or heals >= MOST_HEALS
    if must_ask and not is_heal_wanted and not is_only_deleted:
        if before.outcome == Outcome.HELD and before.edits == tuple(edits[:_MOST_TOLD]):
            return before
        return Drift(Outcome.HELD, tuple(edits), at, since, heals)
    heals = 0 if is_heal_wanted else heals
    return Drift(Outcome.HEALED, tuple(edits), at, since, heals + 1)


def _moment(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
