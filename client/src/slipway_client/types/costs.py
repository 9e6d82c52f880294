"""Costs in US dollars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from slipway_client.types.base import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class CostsKey(Answer):
    name: str
    team_slug: str
    model: str
    deployment: str
    is_idle: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow(Answer):
    """The cost of one group. `is_unpriced`: no hour of it has a price, so the amount is unknown and not 0.
    `idle_amount` is its part of idle where idle is shared; it is not in `amount`.
    """

    key: CostsKey
    amount: Decimal
    estimated_amount: Decimal
    gpu_hours: Decimal
    is_unpriced: bool
    idle_amount: Decimal
    inferences: int | None
    usd_per_1k_inferences_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs(Answer):
    """The amounts of `rows` and `idle` sum to `total_amount` exactly. With a shared `idle_rule` the rows'
    `idle_amount` takes the place of `idle`; with "hidden" idle is in no amount.
    """

    start: datetime
    end: datetime
    rows: tuple[CostRow, ...]
    idle: CostRow | None
    idle_rule: str
    total_amount: Decimal
    previous_total_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusualDay(Answer):
    """A day (UTC) that cost far more or less than usual. No deployment: the team as a whole."""

    team_slug: str
    deployment: str
    day: date
    amount: Decimal
    usual_amount: Decimal
