"""The typed rows of a version's verification: its steps, and the result that an earlier one had."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(slots=True)
class VerificationStep:
    """A row of the column `checks`. `ok` None means not finished or not tried."""

    name: str
    ok: bool | None = None
    detail: str = "waiting"

    def to_json(self) -> dict[str, Any]:
        return {"name": self.name, "ok": self.ok, "detail": self.detail}


def has_failed(checks: Sequence[Mapping[str, Any]], name: str) -> bool:
    """Whether the step of the column `checks` was tried and refused."""
    return any(row["name"] == name and row["ok"] is False for row in checks)


@dataclass(frozen=True, slots=True)
class FormerVerification:
    """The column `former`: what a ready version had before it is verified again."""

    declared: Mapping[str, Any]
    checks: list[dict[str, Any]]
    ready_at: datetime | None

    def to_json(self) -> dict[str, Any]:
        ready_at = None if self.ready_at is None else self.ready_at.isoformat()
        return {"declared": dict(self.declared), "checks": self.checks, "ready_at": ready_at}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> FormerVerification:
        ready_at = data["ready_at"]
        return cls(
            declared=data["declared"],
            checks=data["checks"],
            ready_at=None if ready_at is None else datetime.fromisoformat(ready_at),
        )
