"""Differences between two texts, and between a desired and a live object."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class DiffLine:
    """A line of a diff. `kind` is "same", "added", "removed" or "gap" (unchanged lines left out)."""

    kind: str
    text: str


def diff_lines(before: str, after: str, *, context: int = 3) -> list[DiffLine]:
    """Return the unified diff of two texts. Empty when they are equal."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
    result: list[DiffLine] = []
    for line in lines:
        if line.startswith(("---", "+++")) and not result:
            continue
        result.append(_line(line))
    return result


def _line(line: str) -> DiffLine:
    if line.startswith("@@"):
        return DiffLine("gap", "⋯")
    kinds = {"+": "added", "-": "removed"}
    return DiffLine(kinds.get(line[:1], "same"), line[1:])


def project(live: Any, desired: Any) -> Any:
    """Return the fields of `live` that `desired` sets; defaults that the cluster filled in are left out."""
    if isinstance(live, Mapping) and isinstance(desired, Mapping):
        return {key: project(live[key], desired[key]) for key in desired if key in live}
    if is_list(live) and is_list(desired):
        return [project(item, _match(item, index, desired)) for index, item in enumerate(live)]
    return live


def is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _match(item: Any, index: int, desired: Sequence[Any]) -> Any:
    """Match items with a name (containers, ports, env) by name, others by position."""
    if isinstance(item, Mapping) and "name" in item:
        for other in desired:
            if isinstance(other, Mapping) and other.get("name") == item["name"]:
                return other
    return desired[index] if index < len(desired) else item
