"""The evidence that a fleet request shows, and what an approval of it binds to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from decimal import Decimal
from typing import Any

from fleet.gpus.domain.money import HOURS_PER_MONTH


@dataclass(frozen=True, slots=True)
class FieldChange:
    label: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class AffectedDeployment:
    """The pods of one deployment on the node or, with an empty `deployment`, those of no deployment."""

    team_slug: str
    deployment: str
    namespace: str
    pods: int
    gpus: int
    without_room: int


@dataclass(frozen=True, slots=True)
class HeldBudget:
    """A disruption budget that covers pods of the node."""

    namespace: str
    name: str
    pods: int
    hold: str


@dataclass(frozen=True, slots=True)
class Evidence:
    """The effects of an action as observed when it was requested. Amounts are per hour; None means unknown. `bound`
    is what must still hold at approval.
    """

    changes: tuple[FieldChange, ...] = ()
    deployments: tuple[AffectedDeployment, ...] = ()
    budgets: tuple[HeldBudget, ...] = ()
    warnings: tuple[str, ...] = ()
    usd_per_hour_before: Decimal | None = None
    usd_per_hour_after: Decimal | None = None
    yaml_before: str = ""
    yaml_after: str = ""
    bound: Mapping[str, Any] = field(default_factory=dict)

    @property
    def pods(self) -> int:
        return sum(row.pods for row in self.deployments)

    @property
    def without_room(self) -> int:
        return sum(row.without_room for row in self.deployments)

    @property
    def usd_per_month_change(self) -> Decimal | None:
        if self.usd_per_hour_before is None or self.usd_per_hour_after is None:
            return None
        return (self.usd_per_hour_after - self.usd_per_hour_before) * HOURS_PER_MONTH

    @property
    def usd_per_month_after(self) -> Decimal | None:
        amount = self.usd_per_hour_after
        return None if amount is None else amount * HOURS_PER_MONTH

    def to_json(self) -> dict[str, Any]:
        raw = asdict(self)
        for name in ("usd_per_hour_before", "usd_per_hour_after"):
            raw[name] = None if raw[name] is None else str(raw[name])
        return raw

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Evidence:
        return cls(
            changes=tuple(FieldChange(**row) for row in raw["changes"]),
            deployments=tuple(AffectedDeployment(**row) for row in raw["deployments"]),
            budgets=tuple(HeldBudget(**row) for row in raw["budgets"]),
            warnings=tuple(raw["warnings"]),
            usd_per_hour_before=_amount(raw["usd_per_hour_before"]),
            usd_per_hour_after=_amount(raw["usd_per_hour_after"]),
            yaml_before=raw["yaml_before"],
            yaml_after=raw["yaml_after"],
            bound=raw["bound"],
        )


def hash_of(kind: str, target: str, settings: Mapping[str, Any], evidence: Evidence) -> str:
    parts = [kind, target, dict(settings), evidence.to_json()["bound"]]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _amount(text: str | None) -> Decimal | None:
    return None if text is None else Decimal(text)
