"""Topic and meaning of an event of a timeline, by its kind and message."""

from __future__ import annotations

from enum import StrEnum
from typing import Final


class EventTopic(StrEnum):
    """The topic of an event, by which a timeline is filtered. `MACHINE` is what Slipway and the cluster do to get there."""

    REQUESTS = "requests"
    ROLLOUTS = "rollouts"
    HEALTH = "health"
    MACHINE = "machine"


class EventMeaning(StrEnum):
    """The meaning of an event. Its value is the tone of its mark on pages."""

    DECISION = "decision"
    GOOD = "ok"
    BAD = "bad"
    NEUTRAL = "neutral"


# The life of a change request.
REQUEST_STEPS: Final = frozenset(
    {
        "requested",
        "approval",
        "approved",
        "approval void",
        "emergency",
        "rejected",
        "withdrawn",
        "expired",
    }
)
# What people decide besides.
SETTINGS: Final = frozenset(
    {
        "caller key",
        "drift choice",
        "emergency reviewed",
        "quality watch",
        "safeguard",
        "target",
    }
)
REQUEST_KINDS: Final = REQUEST_STEPS | SETTINGS | {"stopped", "retired"}
HEALTH_KINDS: Final = frozenset(
    {
        "bytes as approved",
        "bytes differ",
        "drift",
        "drift held",
        "drift over",
        "failed",
        "not committed",
        "refused",
        "unreachable",
    }
)
ROLLOUT_PREFIX: Final = "rollout "
STATE_KIND: Final = "state"
# Of the states, those that tell of health. The others are on the way to them.
HEALTH_STATES: Final = ("ready", "degraded")

_BAD: Final = frozenset(
    {
        "approval void",
        "bytes differ",
        "drift held",
        "emergency",
        "expired",
        "failed",
        "not committed",
        "refused",
        "rejected",
        "rollout aborted",
        "rollout aborting",
        "unreachable",
    }
)
_GOOD: Final = frozenset({"bytes as approved", "drift over", "ready", "rollout completed"})


def find_topic(kind: str, message: str) -> EventTopic:
    if kind in REQUEST_KINDS:
        return EventTopic.REQUESTS
    if kind.startswith(ROLLOUT_PREFIX):
        return EventTopic.ROLLOUTS
    if kind in HEALTH_KINDS or (kind == STATE_KIND and message.startswith(HEALTH_STATES)):
        return EventTopic.HEALTH
    return EventTopic.MACHINE


def find_meaning(kind: str, message: str, *, is_by_person: bool) -> EventMeaning:
    """Return the meaning of an event. What people do is a decision unless it stops something."""
    if kind in _BAD or (kind == STATE_KIND and message.startswith("degraded")):
        return EventMeaning.BAD
    if kind in _GOOD or (kind == STATE_KIND and message.startswith("ready")):
        return EventMeaning.GOOD
    return EventMeaning.DECISION if is_by_person else EventMeaning.NEUTRAL
