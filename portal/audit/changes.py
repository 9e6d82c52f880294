"""Describe the values that an event changed in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

_LONGEST = 80
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?([+-]\d\d:\d\d)", re.ASCII)


@dataclass(frozen=True, slots=True)
class ChangedValue:
    """A value that changed. None is one that was not there. `is_simple` is false for structures and long texts."""

    name: str
    before: str | None
    after: str | None
    is_simple: bool

    @property
    def kind(self) -> str:
        """Say what happened to the value: "changed", "set" or "removed"."""
        if self.before is None:
            return "set"
        return "removed" if self.after is None else "changed"


def list_changed_values(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[ChangedValue]:
    """Return the values that differ, in the order of the event."""
    names = dict.fromkeys([*before, *after])
    return [
        _compare(name, before.get(name), after.get(name))
        for name in names
        if before.get(name) != after.get(name)
    ]


def format_value(value: Any) -> str | None:
    """Format a stored value as text: "yes" for True, "weight 25; soak seconds 60" for an object, and a time in UTC as
    "27 Feb 2027 15:33".
    """
    match value:
        case None:
            return None
        case bool():
            return "yes" if value else "no"
        case list():
            return ", ".join(format_value(item) or "none" for item in value) or "none"
        case dict():
            pairs = (
                f"{name.replace('_', ' ')} {format_value(item) or 'none'}"
                for name, item in value.items()
            )
            return "; ".join(pairs) or "none"
        case str():
            return _format_text(value)
    return str(value)


def _format_text(text: str) -> str:
    if not _TIME.fullmatch(text):
        return text or "empty"
    try:
        at = datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return text
    return f"{at.day} {at:%b} {at.year} {at:%H:%M}"


def _compare(name: str, before: Any, after: Any) -> ChangedValue:
    texts = format_value(before), format_value(after)
    is_short = all(len(text) <= _LONGEST for text in texts if text is not None)
    is_plain = not any(_has_structure(value) for value in (before, after))
    return ChangedValue(name.replace("_", " "), *texts, is_simple=is_short and is_plain)


def _has_structure(value: Any) -> bool:
    """Whether a value has parts with names. A list of plain values is read as it is."""
    if isinstance(value, list):
        return any(isinstance(item, list | dict) for item in value)
    return isinstance(value, dict)
