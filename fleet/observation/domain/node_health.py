"""Conditions and taints of a node, without what changes with each heartbeat."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

_LONGEST_MESSAGE: Final = 500
# True is good of what is called so, such as StorageReady or GPUHealthy; of all others, such as MemoryPressure, it is a
# problem.
_GOOD: Final = re.compile(r"(?<!Not)(Ready|Healthy)$")


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition of a node. `is_healthy` is None if the cluster does not know."""

    type: str
    status: str
    reason: str
    message: str
    since: datetime | None

    @property
    def is_healthy(self) -> bool | None:
        if self.status not in {"True", "False"}:
            return None
        return (self.status == "True") is bool(_GOOD.search(self.type))


class Taint(NamedTuple):
    """A tuple, because what is free groups thousands of nodes by theirs."""

    key: str
    value: str
    effect: str

    def __str__(self) -> str:
        """Format the taint in kubectl notation: "nvidia.com/gpu=present:NoSchedule", for example."""
        return f"{self.key}{f'={self.value}' if self.value else ''}:{self.effect}"


def extract_conditions(status: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the conditions as they are stored, without the heartbeat, which would change the row every few minutes."""
    return [
        {
            "type": str(condition.get("type", "")),
            "status": str(condition.get("status", "")),
            "reason": str(condition.get("reason") or ""),
            "message": str(condition.get("message") or "")[:_LONGEST_MESSAGE],
            "since": str(condition.get("lastTransitionTime") or ""),
        }
        for condition in status.get("conditions") or []
    ]


def extract_taints(spec: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        {name: str(taint.get(name) or "") for name in ("key", "value", "effect")}
        for taint in spec.get("taints") or []
    ]


def read_conditions(stored: Sequence[Mapping[str, str]]) -> tuple[Condition, ...]:
    """Read the conditions: Ready first, then problems, then the others."""
    conditions = [
        Condition(
            **{name: row[name] for name in ("type", "status", "reason", "message")},
            since=datetime.fromisoformat(row["since"]) if row["since"] else None,
        )
        for row in stored
    ]
    conditions.sort(key=lambda item: (item.type != "Ready", item.is_healthy is True, item.type))
    return tuple(conditions)


def read_taints(stored: Sequence[Mapping[str, str]]) -> tuple[Taint, ...]:
    return tuple(Taint(row["key"], row["value"], row["effect"]) for row in stored)
