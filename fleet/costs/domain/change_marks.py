"""The marks of changes on cost charts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from fleet.costs.domain.results import Step


@dataclass(frozen=True, slots=True, order=True)
class ChangeMark:
    """A change of a deployment, such as "r3 promoted" at a time."""

    at: datetime
    text: str

    def bar_at(self, step: Step) -> datetime:
        """Return the time of the bar that it is in."""
        hour = self.at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        return hour if step is Step.HOUR else hour.replace(hour=0)
