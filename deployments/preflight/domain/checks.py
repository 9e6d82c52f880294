"""What is told before anything happens: checks with their fixes, the cost, and the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment


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
    its fewest replicas. `team_month_min` and `team_month_max` are a whole month of everything the
    team then runs, with this at its fewest and at its most replicas. While a rollout runs, for about
    `overlap_seconds`, the revision that serves costs `overlap_amount` beside the candidate; after
    that only one of them does.
    """

    per_hour: Decimal | None
    month_min: Decimal | None
    month_max: Decimal | None
    budget: Decimal | None
    spent: Decimal | None
    forecast: Decimal | None
    price_source: str = ""
    team_month_min: Decimal | None = None
    team_month_max: Decimal | None = None
    overlap_amount: Decimal | None = None
    overlap_seconds: int | None = None

    def to_json(self) -> dict[str, str | None]:
        amounts = {
            "per_hour": self.per_hour,
            "month_min": self.month_min,
            "month_max": self.month_max,
            "budget": self.budget,
            "spent": self.spent,
            "forecast": self.forecast,
            "team_month_min": self.team_month_min,
            "team_month_max": self.team_month_max,
            "overlap_amount": self.overlap_amount,
            "overlap_seconds": self.overlap_seconds,
        }
        told = {name: None if value is None else str(value) for name, value in amounts.items()}
        return {**told, "price_source": self.price_source}

    @classmethod
    def from_json(cls, raw: Mapping[str, Any]) -> Cost:
        """What a change request carries."""

        def amount(name: str) -> Decimal | None:
            return None if raw.get(name) is None else Decimal(raw[name])

        seconds = raw.get("overlap_seconds")
        return cls(
            per_hour=amount("per_hour"),
            month_min=amount("month_min"),
            month_max=amount("month_max"),
            budget=amount("budget"),
            spent=amount("spent"),
            forecast=amount("forecast"),
            price_source=str(raw.get("price_source", "")),
            team_month_min=amount("team_month_min"),
            team_month_max=amount("team_month_max"),
            overlap_amount=amount("overlap_amount"),
            overlap_seconds=None if seconds is None else int(seconds),
        )


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
