"""A deployment keeps GPUs that did nothing for a day."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="idle_gpus",
    label="Idle GPUs",
    advice="Stop it, or request fewer replicas, office hours or scale to zero.",
)
HOURS: Final = 24
OPENS_BELOW: Final = 0.01
ENDS_AT: Final = 0.02
# What is less would be shown as 0.0%.
_LEAST: Final = 0.001


@dataclass(frozen=True, slots=True)
class IdleFacts:
    """The `gpus` that a deployment holds now, and its use of them in the last 24 hours.

    `known_hours` is in how many of them it was read, `busy_share` for what part of those a GPU was busy.
    """

    gpus: float
    known_hours: int
    busy_share: float


def decide(facts: IdleFacts | None) -> AlertVerdict:
    if facts is None:
        return AlertVerdict(None)
    if facts.gpus <= 0 or facts.busy_share >= ENDS_AT:
        return AlertVerdict(is_firing=False)
    # An hour that was not read may have been busy.
    if facts.known_hours < HOURS or facts.busy_share >= OPENS_BELOW:
        return AlertVerdict(None)
    busy = f"{facts.busy_share:.1%}" if facts.busy_share >= _LEAST else f"less than {_LEAST:.1%}"
    held = "1 GPU" if facts.gpus == 1 else f"{facts.gpus:g} GPUs"
    return AlertVerdict(
        is_firing=True,
        message=f"It holds {held}, busy {busy} of the last 24 hours.",
    )
