"""Costs in US dollars."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
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
    """`is_unpriced`: no hour of it has a price, so the amount is unknown and not 0."""

    key: CostsKey
    amount: Decimal
    estimated_amount: Decimal
    gpu_hours: Decimal
    is_unpriced: bool
    inferences: int | None
    usd_per_1k_inferences_amount: Decimal | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs(Answer):
    """The amounts of `rows` and `idle` sum to `total_amount` exactly."""

    start: datetime
    end: datetime
    rows: tuple[CostRow, ...]
    idle: CostRow | None
    total_amount: Decimal
    previous_total_amount: Decimal | None
