"""The evidence on a request's page, as stored in the row of a decided request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class ShownRequirement:
    rule: str
    why: str


@dataclass(frozen=True, slots=True)
class ShownProgress:
    description: str
    missing: int
    requirement: ShownRequirement


@dataclass(frozen=True, slots=True)
class ShownStatus:
    """The status of the approvals at the decision."""

    is_emergency: bool
    missing: int
    rows: tuple[ShownProgress, ...]


@dataclass(frozen=True, slots=True)
class ShownApproval:
    """An approval at the decision. `id` is the approval's; the names are those that people had."""

    id: int
    user: str
    stands_for: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownEvidence:
    """The evidence at the decision. Checks, cost, lines and metadata are JSON, which their own classes read."""

    at: datetime
    evidence_hash: str
    title: str
    detail: str
    consequence: str
    requester: str
    team: str
    cluster: str
    environment: str
    checks: Sequence[dict[str, Any]]
    checked_at: datetime
    cost: Mapping[str, Any]
    diff: Sequence[dict[str, str]]
    guards: Sequence[dict[str, Any]]
    manifests: str
    promotion: Mapping[str, Any]
    metadata: Mapping[str, Any]
    approval_status: ShownStatus
    approvals: tuple[ShownApproval, ...]

    def to_json(self) -> dict[str, Any]:
        times = {"at": self.at.isoformat(), "checked_at": self.checked_at.isoformat()}
        return {**asdict(self), **times}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> ShownEvidence:
        read = {
            "at": datetime.fromisoformat(raw["at"]),
            "checked_at": datetime.fromisoformat(raw["checked_at"]),
            "approval_status": _status(raw["approval_status"]),
            "approvals": tuple(ShownApproval(**row) for row in raw["approvals"]),
        }
        return cls(**{**raw, **read})


def _status(raw: Mapping[str, Any]) -> ShownStatus:
    rows = tuple(
        ShownProgress(row["description"], row["missing"], ShownRequirement(**row["requirement"]))
        for row in raw["rows"]
    )
    return ShownStatus(raw["is_emergency"], raw["missing"], rows)
