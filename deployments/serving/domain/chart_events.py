"""Events of a deployment as its charts show them: few words for a mark, and why there are no readings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from deployments.states import DeploymentState

NO_READINGS: Final = "no readings"
NO_REQUESTS: Final = "no requests"
NOT_READY: Final = "not ready"
UNREACHABLE: Final = "cluster not reachable"
STATE_KIND: Final = "state"
UNREACHABLE_KIND: Final = "unreachable"
_FIRST_WEIGHT: Final = "the candidate is ready; it gets "
_ROLLOUTS: Final = {
    "rollout started": "rollout began",
    "rollout paused": "rollout paused",
    "rollout promoting": "gets all requests",
    "rollout completed": "rollout completed",
    "rollout aborting": "rollout aborted",
    "failed": "failed",
}
_RUNNING: Final = "rollout running"
# Kinds of lines of the timeline whose meaning a reader of a chart needs, with those that say why readings lack.
KINDS: Final = (*_ROLLOUTS, _RUNNING, STATE_KIND, UNREACHABLE_KIND)
_MARKED_STATES: Final = (
    DeploymentState.READY,
    DeploymentState.DEGRADED,
    DeploymentState.STOPPED,
    DeploymentState.RETIRED,
)
_WITHOUT_PODS: Final = {
    DeploymentState.PENDING: NOT_READY,
    DeploymentState.PROGRESSING: NOT_READY,
    DeploymentState.STOPPED: "stopped",
    DeploymentState.RETIRED: "retired",
}
# A cluster is found unreachable some time after its last answer.
_NOTICED_AFTER: Final = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class StateChange:
    """The time from which on the deployment was in a state."""

    at: datetime
    state: str


@dataclass(frozen=True, slots=True)
class DeploymentHistory:
    """The states of a deployment, oldest first, and when its cluster was found unreachable. `unreachable_since` is
    the time of the cluster's last answer while it is unreachable.
    """

    created_at: datetime
    first_ready_at: datetime | None
    states: Sequence[StateChange]
    unreachable_at: Sequence[datetime] = ()
    unreachable_since: datetime | None = None

    def describe_absence(self, at: datetime, read_at: Sequence[datetime]) -> str:
        """Say why nothing was read at `at`. `read_at` are the times of readings, oldest first."""
        if at < self.created_at:
            return "not deployed yet"
        if self._is_unreachable(at, read_at):
            return UNREACHABLE
        place = bisect_right(self.states, at, key=lambda change: change.at)
        if place and (reason := _WITHOUT_PODS.get(DeploymentState(self.states[place - 1].state))):
            return reason
        is_early = self.first_ready_at is None or at < self.first_ready_at
        return NOT_READY if is_early else NO_READINGS

    def _is_unreachable(self, at: datetime, read_at: Sequence[datetime]) -> bool:
        """Whether the cluster was unreachable: until the first reading after that was found."""
        if self.unreachable_since is not None and at >= self.unreachable_since:
            return True
        before = bisect_right(read_at, at)
        last = read_at[before - 1] if before else None
        following = read_at[before] if before < len(read_at) else None
        return any(
            (last is None or found_at > last)
            and (following is None or found_at < following)
            and at >= found_at - _NOTICED_AFTER
            for found_at in self.unreachable_at
        )


def parse_state(message: str) -> str:
    """Return the state that a line of the timeline names: "degraded" of "degraded: 1 of 2 pods is ready"."""
    return message.partition(":")[0]


def describe_event(kind: str, message: str, revision_number: int | None) -> str:
    """Describe a line of the timeline in few words. Empty if readers of charts do not need it."""
    if kind == STATE_KIND:
        state = parse_state(message)
        return state if state in _MARKED_STATES else ""
    if kind == UNREACHABLE_KIND:
        return UNREACHABLE
    text = _ROLLOUTS.get(kind, "")
    if kind == _RUNNING:
        text = _describe_step(message)
    name = "" if revision_number is None else f"r{revision_number} "
    return f"{name}{text}" if text else ""


def _describe_step(message: str) -> str:
    if message.startswith(_FIRST_WEIGHT):
        return f"gets {message.removeprefix(_FIRST_WEIGHT)}"
    if message == "unpaused":
        return "rollout resumed"
    return message.partition(":")[0]
