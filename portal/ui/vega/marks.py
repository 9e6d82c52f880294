"""Marks of events on charts: ticks on the time axis, so that no text is over what is drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

# The column of marks in a table, and the title of their tooltips.
CHANGES: Final = "Changes"
# Pixels from the axis to the middle of a mark: above the labels of the axis.
_BELOW_AXIS: Final = 6
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """An event at a time of the chart."""

    at: datetime
    text: str


def merge(marks: Sequence[Mark]) -> list[Mark]:
    """Merge the marks into one for each time. What happened again is named once; beyond some names they are only
    counted.
    """
    texts: dict[datetime, dict[str, int]] = {}
    for mark in sorted(marks, key=lambda mark: mark.at):
        of_time = texts.setdefault(mark.at, {})
        of_time[mark.text] = of_time.get(mark.text, 0) + 1
    return [Mark(at, _listed(of_time)) for at, of_time in texts.items()]


def _listed(counts: Mapping[str, int]) -> str:
    shown = list(counts.items())[:_MOST_NAMES]
    names = [text if count == 1 else f"{text} ({count} times)" for text, count in shown]
    more = len(counts) - len(shown)
    return ", ".join([*names, f"and {more} more"] if more else names)


def draw_marks(marks: Sequence[Mark], x: dict[str, Any]) -> dict[str, Any]:
    """Return small triangles below the time axis, one for each mark; what happened is on hover and in the table."""
    values = [{"at": iso(mark.at), "text": mark.text} for mark in marks]
    shape = {"type": "point", "shape": "triangle-up", "size": 36, "filled": True, "opacity": 1}
    place = {"y": "height", "yOffset": _BELOW_AXIS, "color": "var(--text-2)"}
    tooltip = [{"field": "text", "title": CHANGES}]
    encoding = {"x": x, "tooltip": tooltip}
    return {"data": {"values": values}, "mark": shape | place, "encoding": encoding}


def iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
