"""States of a fleet action and every legal transition. Services move rows only along these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Final


class ActionState(StrEnum):
    SUBMITTED = "submitted"
    APPROVED = "approved"
    APPLYING = "applying"
    # Somebody stopped it: what it did to a node is being reverted.
    CANCELING = "canceling"
    DONE = "done"
    FAILED = "failed"
    CANCELED = "canceled"
    REJECTED = "rejected"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"


ACTION: Final[Mapping[ActionState, frozenset[ActionState]]] = {
    ActionState.SUBMITTED: frozenset(
        {
            ActionState.APPROVED,
            ActionState.REJECTED,
            ActionState.WITHDRAWN,
            ActionState.EXPIRED,
        }
    ),
    ActionState.APPROVED: frozenset(
        {ActionState.APPLYING, ActionState.WITHDRAWN, ActionState.EXPIRED}
    ),
    ActionState.APPLYING: frozenset({ActionState.DONE, ActionState.FAILED, ActionState.CANCELING}),
    ActionState.CANCELING: frozenset({ActionState.CANCELED, ActionState.FAILED}),
    ActionState.DONE: frozenset(),
    ActionState.FAILED: frozenset(),
    ActionState.CANCELED: frozenset(),
    ActionState.REJECTED: frozenset(),
    ActionState.WITHDRAWN: frozenset(),
    ActionState.EXPIRED: frozenset(),
}
OPEN: Final = tuple(state for state, following in ACTION.items() if following)
WAITING: Final = (ActionState.SUBMITTED, ActionState.APPROVED)
RUNNING: Final = (ActionState.APPLYING, ActionState.CANCELING)
SUBMITTED_FOR: Final = timedelta(days=14)
APPROVED_FOR: Final = timedelta(hours=1)
CANCELING_FOR: Final = timedelta(minutes=15)


def is_final(state: str) -> bool:
    return not ACTION[ActionState(state)]
