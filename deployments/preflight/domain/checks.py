"""What is told before anything happens: checks with their fixes, the cost, and the manifests."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deployments.domain.specs import ServingSpec
from deployments.domain.states import Environment


@dataclass(frozen=True, slots=True)
class DeployDraft:
    """What a person fills in for a new deployment."""

    version_id: int
    cluster_id: int
    name: str
    spec: ServingSpec
    environment: Environment = Environment.PRODUCTION


@dataclass(frozen=True, slots=True)
class Check:
    """`ok` None means not known. Only a blocking False refuses the request."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""
    is_blocking: bool = True

    @property
    def is_refusal(self) -> bool:
        return self.ok is False and self.is_blocking

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "ok": self.ok,
            "detail": self.detail,
            "fix": self.fix,
            "is_blocking": self.is_blocking,
        }


@dataclass(frozen=True, slots=True)
class Cost:
    """US dollars. None is not known. `budget` None means that the team has none.

    `spent` is this month's so far; `forecast` adds the rest of the month with this running at
    its fewest replicas.
    """

    per_hour: Decimal | None
    month_min: Decimal | None
    month_max: Decimal | None
    budget: Decimal | None
    spent: Decimal | None
    forecast: Decimal | None
    price_source: str = ""

    def to_json(self) -> dict[str, str | None]:
        amounts = {
            "per_hour": self.per_hour,
            "month_min": self.month_min,
            "month_max": self.month_max,
            "budget": self.budget,
            "spent": self.spent,
            "forecast": self.forecast,
        }
        told = {name: None if value is None else str(value) for name, value in amounts.items()}
        return {**told, "price_source": self.price_source}


@dataclass(frozen=True, slots=True)
class Preflight:
    checks: tuple[Check, ...]
    cost: Cost
    manifests: str
    evidence_hash: str
    url: str

    @property
    def can_submit(self) -> bool:
        """What is not known does not stop a request; it is checked again before it is applied."""
        return not any(check.is_refusal for check in self.checks)
