"""Taints of nodes that pods tolerate, as kubectl writes taints: "key=value:Effect, key:Effect"."""

from __future__ import annotations

import re
from typing import Final

EFFECTS: Final = ("NoSchedule", "NoExecute")
_MOST: Final = 10
_TAINT: Final = re.compile(
    r"(?P<key>([a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)"
    r"(=(?P<value>[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?))?"
    r":(?P<effect>NoSchedule|NoExecute)"
)


def split(text: str) -> tuple[str, ...]:
    """Each taint once, sorted. Raises ValueError for what is none."""
    taints = sorted({part.strip() for part in text.split(",") if part.strip()})
    if len(taints) > _MOST or any(not _TAINT.fullmatch(taint) for taint in taints):
        raise ValueError("not taints")
    return tuple(taints)


def normalized(text: str) -> str:
    """The same taints always as the same text."""
    return ", ".join(split(text))


def manifests(text: str) -> list[dict[str, str]]:
    """Tolerations of a pod. Without a value, every value of the key is tolerated."""
    return [_toleration(taint) for taint in split(text)]


def _toleration(taint: str) -> dict[str, str]:
    match = _TAINT.fullmatch(taint)
    if match is None:
        raise ValueError(f"{taint} is no taint")
    value = match["value"]
    rest = {"operator": "Equal", "value": value} if value else {"operator": "Exists"}
    return {"key": match["key"], "effect": match["effect"], **rest}
