"""The answers of a deployment changed: golden requests fail, or a day is unlike those after the promotion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from deployments.alerts.domain.signals import AlertKind, AlertVerdict

KIND: Final = AlertKind(
    code="answers",
    label="Answers changed",
    advice="See the evidence in the Quality tab. Roll back if it began with a revision.",
    # The event deployment.health tells it once.
    notifies=False,
)


@dataclass(frozen=True, slots=True)
class AnswerFacts:
    """The messages of what failed, and whether anything was judged at all."""

    failed: tuple[str, ...]
    is_judged: bool


def decide(facts: AnswerFacts) -> AlertVerdict:
    if facts.failed:
        return AlertVerdict(is_firing=True, message=". ".join(facts.failed) + ".")
    return AlertVerdict(is_firing=False if facts.is_judged else None)
