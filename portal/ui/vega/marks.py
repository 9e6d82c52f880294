"""Marks of events on charts: dotted lines with labels in rows, so that neighbours do not overlap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

# The column of marks in a table, and the title of their tooltips.
CHANGES: Final = "Changes"
# Labels of marks alternate between this many rows.
_MARK_ROWS = 3
# Letters of a mark's label; what it says in full is in its tooltip and in the table.
_LONGEST_MARK = 28
_MOST_NAMES: Final = 8


@dataclass(frozen=True, slots=True)
class Mark:
    """An event, as a dotted vertical line with a label."""

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


def marks_on_bars(
    marks: Sequence[Mark], x: dict[str, Any], *, middle: datetime
) -> list[dict[str, Any]]:
    """Return rules with labels at the top of the drawing, in rows as those of lines. After the middle a label is
    left of its rule, so that the end of the chart does not cut it off.
    """
    values = [{"at": iso(mark.at), "text": mark.text, "label": _cut(mark.text)} for mark in marks]
    rule = {"type": "rule", "color": "var(--text-3)", "strokeDash": [2, 3]}
    tooltip = [{"field": "text", "title": CHANGES}]
    layers: list[dict[str, Any]] = [
        {"data": {"values": values}, "mark": rule, "encoding": {"x": x, "tooltip": tooltip}}
    ]
    for place, mark in enumerate(marks):
        side = {"align": "right", "dx": -4} if mark.at > middle else {"align": "left", "dx": 4}
        text = {
            "type": "text",
            "color": "var(--text-3)",
            "y": 0,
            "dy": -6 - 13 * (place % _MARK_ROWS),
        }
        encoding = {"x": x, "text": {"field": "label"}, "tooltip": tooltip}
        data = {"values": [values[place]]}
        layers.append({"data": data, "mark": text | side, "encoding": encoding})
    return layers


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_MARK else f"{text[: _LONGEST_MARK - 1]}…"


def marks_on_lines(marks: Sequence[Mark]) -> list[dict[str, Any]]:
    """Labels of neighbouring marks are in different rows, so that they do not overlap."""
    data = {"values": [{"at": iso(mark.at), "text": mark.text} for mark in marks]}
    x = {"field": "at", "type": "temporal"}
    rule = {"type": "rule", "color": "var(--text-3)", "strokeDash": [2, 3]}
    label_mark = {
        "type": "text",
        "color": "var(--text-3)",
        "align": "left",
        "dx": 4,
        "y": "height",
    }
    return [{"data": data, "mark": rule, "encoding": {"x": x}}] + [
        {
            "data": {"values": data["values"][row::_MARK_ROWS]},
            "mark": label_mark | {"dy": -6 - 13 * row},
            "encoding": {"x": x, "text": {"field": "text"}},
        }
        for row in range(min(_MARK_ROWS, len(marks)))
    ]


def iso(at: datetime) -> str:
    return at.isoformat(timespec="seconds").replace("+00:00", "Z")
