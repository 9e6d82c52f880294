"""Requests wait in the queue of every replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="queue_depth",
    label="Queue",
    advice="Request more replicas, or a larger batch where the GPU has room.",
)
# Of each replica, in every reading of five minutes.
OPENS_AT: Final = 10
# It ends when their mean is below this, so that a queue around the limit is one alert.
ENDS_BELOW: Final = 5.0
LEAST_READINGS: Final = 3


@dataclass(frozen=True, slots=True)
class QueueFacts:
    """The queue depth over the last five minutes' readings of all replicas."""

    lowest: int
    mean: float
    readings: int


def decide(facts: QueueFacts | None) -> AlertVerdict:
    if facts is None or facts.readings < LEAST_READINGS:
        return AlertVerdict(None)
    if facts.lowest >= OPENS_AT:
        return AlertVerdict(
            is_firing=True,
            message=f"For 5 minutes at least {facts.lowest} requests waited in each replica.",
        )
    return AlertVerdict(is_firing=False if facts.mean < ENDS_BELOW else None)
