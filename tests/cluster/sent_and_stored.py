"""What an API server kept of an object that was sent to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_GONE = object()


def dropped_fields(sent: Any, stored: Any, path: str = "") -> Iterator[str]:
    """Paths of what was sent and is not in the stored object with that value. An empty text may be
    left out: it is the default of every text.
    """
    if isinstance(sent, dict):
        kept = stored if isinstance(stored, dict) else {}
        pairs = [(f".{key}", value, kept.get(key, _GONE)) for key, value in sent.items()]
    elif isinstance(sent, list):
        items = stored if isinstance(stored, list) else []
        pairs = [
            (f"[{place}]", value, _counterpart(value, place, items))
            for place, value in enumerate(sent)
        ]
    else:
        pairs = []
        if sent != stored:
            yield f"{path} ({sent!r} became {stored!r})"
    for step, value, match in pairs:
        if match is _GONE and value != "":
            yield f"{path}{step}"
        elif match is not _GONE:
            yield from dropped_fields(value, match, f"{path}{step}")


def _counterpart(value: Any, place: int, stored: list[Any]) -> Any:
    """The item with the same name, where that is one item's; else the one at the same place."""
    if isinstance(value, dict) and "name" in value:
        named = [item for item in stored if item.get("name") == value["name"]]
        if len(named) < 2:
            return named[0] if named else _GONE
    return stored[place] if place < len(stored) else _GONE
