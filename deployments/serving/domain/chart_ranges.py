"""The ranges of time that charts of a deployment show, each in steps that give at most some 300 points a line."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Final


@dataclass(frozen=True, slots=True)
class ChartRange:
    """A range of time until now. `text` is on its link; `title` and `step_text` say what the charts show."""

    name: str
    text: str
    title: str
    step_text: str
    span: timedelta
    step: timedelta
    time_format: str = "%H:%M"

    @property
    def description(self) -> str:
        return f"{self.title}, {self.step_text}"


_MINUTE: Final = timedelta(minutes=1)
_HOUR: Final = timedelta(hours=1)
CHART_RANGES: Final = (
    ChartRange("1h", "1 h", "last hour", "per minute", _HOUR, _MINUTE),
    ChartRange("6h", "6 h", "last 6 hours", "per 2 minutes", 6 * _HOUR, 2 * _MINUTE),
    ChartRange("24h", "24 h", "last 24 hours", "per 5 minutes", 24 * _HOUR, 5 * _MINUTE),
    ChartRange("7d", "7 d", "last 7 days", "per hour", 7 * 24 * _HOUR, _HOUR, "%-d %b"),
)
DEFAULT: Final = CHART_RANGES[0]


def find_range(name: str) -> ChartRange:
    """Return the range of that name, else the default."""
    return next((one for one in CHART_RANGES if one.name == name), DEFAULT)
