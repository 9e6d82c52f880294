"""The events of notifications. Each has a stable code; no others can be sent."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Event:
    """An event that people can subscribe to. `code` is stable ("rollout.waits"); `phrase` names it in a list of
    choices.
    """

    code: str
    phrase: str


APPROVAL_REQUESTED: Final = Event("approval.requested", "Change request waiting for approval")
APPROVAL_DECIDED: Final = Event("approval.decided", "Change request approved, rejected or expired")
CHANGE_COMMENTED: Final = Event(
    "change.commented", "Comment on a change request that you sent or commented on"
)
CHANGE_FINISHED: Final = Event("change.finished", "Change completed or failed")
ROLLOUT_STARTED: Final = Event("rollout.started", "Rollout started")
ROLLOUT_WAITS: Final = Event("rollout.waits", "Rollout step waiting for promotion")
ROLLOUT_MOVED: Final = Event("rollout.moved", "Rollout promoted, paused or resumed")
ROLLOUT_ABORTED: Final = Event("rollout.aborted", "Rollout aborted")
ROLLOUT_FINISHED: Final = Event("rollout.finished", "Rollout completed")
ROLLOUT_ALARM: Final = Event(
    "rollout.alarm", "Rollout needs attention: metrics disagree or are missing"
)
DEPLOYMENT_FAILING: Final = Event("deployment.failing", "Deployment failing or drifted")
DEPLOYMENT_HEALTH: Final = Event(
    "deployment.health", "Deployment left its 7-day baseline, or its answers changed"
)
BUDGET_REACHED: Final = Event(
    "budget.reached", "Monthly budget at 50, 80 or 100%, or forecast above it"
)
ADVICE_IDLE: Final = Event("advice.idle", "Deployment without requests for a week")
ALERT_OPENED: Final = Event("alert.opened", "Alert opened")
ALERT_ENDED: Final = Event("alert.ended", "Alert ended")
FLEET_REQUESTED: Final = Event("fleet.requested", "Fleet action waiting for approval")
FLEET_DECIDED: Final = Event("fleet.decided", "Fleet action approved, rejected or expired")
FLEET_FINISHED: Final = Event("fleet.finished", "Fleet action completed, failed or canceled")
BATCH_REQUESTED: Final = Event("batch.requested", "Batch job waiting for approval")
BATCH_DECIDED: Final = Event("batch.decided", "Batch job approved or rejected")
BATCH_FINISHED: Final = Event("batch.finished", "Batch job finished, failed or canceled")
ACCOUNT_OPENED: Final = Event(
    "account.opened", "Someone was invited, or let into an account by someone else"
)
# Sent to one channel only, by its test button.
CHANNEL_TEST: Final = Event("channel.test", "Channel test")

CATALOGUE: Final = (
    APPROVAL_REQUESTED,
    APPROVAL_DECIDED,
    CHANGE_COMMENTED,
    CHANGE_FINISHED,
    ROLLOUT_STARTED,
    ROLLOUT_WAITS,
    ROLLOUT_MOVED,
    ROLLOUT_ABORTED,
    ROLLOUT_FINISHED,
    ROLLOUT_ALARM,
    DEPLOYMENT_FAILING,
    DEPLOYMENT_HEALTH,
    BUDGET_REACHED,
    ADVICE_IDLE,
    ALERT_OPENED,
    ALERT_ENDED,
    FLEET_REQUESTED,
    FLEET_DECIDED,
    FLEET_FINISHED,
    BATCH_REQUESTED,
    BATCH_DECIDED,
    BATCH_FINISHED,
    ACCOUNT_OPENED,
)
_KNOWN: Final = {event.code: event for event in (*CATALOGUE, CHANNEL_TEST)}


def find(code: str) -> Event:
    """Raises ValueError for a code that is not in the catalogue."""
    if code not in _KNOWN:
        raise ValueError(f"{code!r} is not an event; add it to portal.notifications.events")
    return _KNOWN[code]


def list_unknown(codes: Collection[str]) -> list[str]:
    offered = {event.code for event in CATALOGUE}
    return sorted(code for code in codes if code not in offered)
