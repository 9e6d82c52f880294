"""Rows of a deployment's timeline."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from deployments.models import DeploymentEvent, RolloutEvent

_BAD = ("fail", "abort", "reject", "refused", "degraded", "crash", "sick")


@dataclass(frozen=True, slots=True)
class EventRow:
    row: DeploymentEvent | RolloutEvent
    # The mark's colour in the timeline: "" or "bad".
    tone: str


def event_rows(events: Any) -> list[EventRow]:
    return [EventRow(row, tone_of(row.kind)) for row in events]


def tone_of(kind: str) -> str:
    return "bad" if any(word in kind for word in _BAD) else ""
