"""The result of a preflight: checks with fixes, the cost and the manifests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any

from deployments.spec.domain.serving_spec import ServingSpec
from deployments.states import Environment


@dataclass(frozen=True, slots=True)
class DeployDraft:
    """The request for a new deployment."""

    version_id: int
    cluster_id: int
    name: str
    spec: ServingSpec
    environment: Environment = Environment.PRODUCTION
    # The deployment of a request that this one replaces: its name is free.
    replaced_deployment_id: int | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. `ok` None means unknown. Only a blocking check that is False refuses the request."""

    name: str
    ok: bool | None
    detail: str
    fix: str = ""
    is_blocking: bool = True

    @property
    def is_refusal(self) -> bool:
        return self.ok is False and self.is_blocking

    def to_json(self) -> dict[str, Any]:
        """Return a row of the column `checks` of a change request."""
        return asdict(self)

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Check:
        return cls(**row)


@dataclass(frozen=True, slots=True)
class LastRecheck:
    """The column `last_recheck` of a change request: its checks when they were last repeated."""

    at: datetime
    evidence_hash: str
    can_approve: bool
    checks: tuple[Check, ...]

    def to_json(self) -> dict[str, Any]:
        checks = [check.to_json() for check in self.checks]
        return {**asdict(self), "at": self.at.isoformat(), "checks": checks}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LastRecheck | None:
        """Read the column. None for {}: the checks were never repeated."""
        if not data:
            return None
        checks = tuple(map(Check.from_json, data["checks"]))
        return cls(**{**data, "at": datetime.fromisoformat(data["at"]), "checks": checks})


@dataclass(frozen=True, slots=True)
class CostHeadline:
    """The one amount by which lists, pages and messages name the cost of a request. None means unknown."""

    amount: Decimal | None
    unit: str


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a request in US dollars. None means unknown; `budget` None means that the team has none.

    `spent` is the month to date; `forecast` adds the rest of the month with this revision at min
    replicas. `team_month_min` and `team_month_max` are a full month of everything that the team
    then runs, with this revision at min and max replicas. `overlap_amount` is the cost of the
    stable revision during the `overlap_seconds` of a rollout. `replaced_month_max` is a full month of the
    revision that this one replaces, at max replicas. With several instance types all amounts are those of the
    dearest; those of the cheapest are `cheapest_per_hour`, `cheapest_month_min` and `cheapest_month_max`, None
    for one instance type.
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
    replaced_month_max: Decimal | None = None
    overlap_amount: Decimal | None = None
    overlap_seconds: int | None = None
    cheapest_per_hour: Decimal | None = None
    cheapest_month_min: Decimal | None = None
    cheapest_month_max: Decimal | None = None

    @property
    def headline(self) -> CostHeadline:
        """Name what the request adds: two revisions for a while, else a month at min replicas."""
        if self.overlap_seconds:
            return CostHeadline(self.overlap_amount, "once")
        return CostHeadline(self.month_min, "a month")

    @property
    def is_increase(self) -> bool:
        """Whether it costs more in a full month than what it replaces. Yes where a price is missing."""
        if self.month_max is None or self.replaced_month_max is None:
            return True
        return self.month_max > self.replaced_month_max

    def to_json(self) -> dict[str, str | None]:
        """Return the column `cost` of a change request."""
        values = asdict(self)
        return {name: None if value is None else str(value) for name, value in values.items()}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Cost:
        amounts = {
            field.name: None if data.get(field.name) is None else Decimal(data[field.name])
            for field in fields(cls)
            if field.name not in ("price_source", "overlap_seconds")
        }
        seconds = data.get("overlap_seconds")
        return cls(
            **amounts,
            price_source=str(data.get("price_source", "")),
            overlap_seconds=None if seconds is None else int(seconds),
        )


@dataclass(frozen=True, slots=True)
class Preflight:
    checks: tuple[Check, ...]
    cost: Cost
    manifests: str
    evidence_hash: str
    url: str
    # Of the shares that the spec requests, comma-separated; empty if no node offers them.
    gpu_name: str

    @property
    def can_submit(self) -> bool:
        """Whether no check refuses. Unknown checks do not block: they run again before the change is applied."""
        return not any(check.is_refusal for check in self.checks)
