"""The four figures at the top of the home page."""

from __future__ import annotations

import calendar
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from deployments.serving.selectors.statistics import Figures
from fleet.costs.domain.forecast import month_end_amount
from fleet.costs.selectors import costs
from fleet.gpus.domain import shares
from fleet.gpus.domain.intervals import minute_of
from fleet.gpus.domain.money import CENT
from fleet.telemetry.selectors import current
from fleet.telemetry.selectors.current import AllocatedGpus, TeamMinute
from portal.accounts.models import Team

_MINUTES = 30


@dataclass(frozen=True, slots=True)
class TrafficTiles:
    """The traffic tiles. None means unknown. The trends have one value per minute, None where nothing was observed."""

    requests_per_second: float | None
    error_ratio: float | None
    mean_latency_ms: float | None
    requests_trend: Sequence[float | None]
    latency_trend: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class GpuTile:
    """The tile of a team's GPUs. `kinds` is what the team holds: "GPUs", "Neuron devices" or both."""

    kinds: str
    allocated: Decimal
    quota: int
    percent: float | None
    tone: str


@dataclass(frozen=True, slots=True)
class SpendTile:
    """The tile of a team's spend. `forecast` is None if the price of an allocated GPU is not known."""

    month: str
    spent: Decimal
    budget: Decimal | None
    spent_percent: float | None
    month_percent: float
    forecast: Decimal | None
    over: Decimal | None
    has_demo_data: bool

    @property
    def tone(self) -> str:
        return "warn" if self.over else ""


def build_traffic_tiles(team: Team, figures: Figures, now: datetime) -> TrafficTiles:
    """`figures` are the sums over the team's deployments."""
    minutes = current.minutes_of_team(team_slug=team.slug, minutes=_MINUTES)
    by_minute = {minute.at: minute for minute in minutes}
    first = minute_of(now - timedelta(minutes=_MINUTES))
    # The current minute is left out: its incomplete count would look like a drop.
    slots = [by_minute.get(first + timedelta(minutes=i)) for i in range(_MINUTES)]
    return TrafficTiles(
        requests_per_second=figures.requests_per_second,
        error_ratio=figures.error_ratio,
        mean_latency_ms=figures.latency_ms,
        requests_trend=[None if m is None else (m.success + m.failure) / 60 for m in slots],
        latency_trend=[_mean_ms([m]) if m else None for m in slots],
    )


def build_gpu_tile(team: Team, allocated: AllocatedGpus) -> GpuTile:
    percent = float(100 * allocated.gpus / team.quota_gpus) if team.quota_gpus else None
    tone = "warn" if percent is not None and percent > 90 else ""
    kinds = shares.name_plural(allocated.resources)
    return GpuTile(kinds, allocated.gpus.normalize(), team.quota_gpus, percent, tone)


def build_spend_tile(team: Team, allocated: AllocatedGpus, now: datetime) -> SpendTile:
    spend = costs.sum_spend_this_month(team_slug=team.slug)
    spent = spend.total_amount.quantize(CENT)
    budget = team.monthly_budget_amount or None
    days = calendar.monthrange(now.year, now.month)[1]
    elapsed_hours = (now.day - 1) * 24 + now.hour + now.minute / 60
    forecast = month_end_amount(
        spent_amount=spent,
        usd_per_hour_amount=allocated.usd_per_hour_amount,
        at=now,
        ending=allocated.ending,
    )
    over = forecast - budget if forecast is not None and budget else None
    return SpendTile(
        month=f"{now:%B}",
        spent=spent,
        budget=budget,
        spent_percent=float(100 * spent / budget) if budget else None,
        month_percent=100 * elapsed_hours / (days * 24),
        forecast=forecast,
        over=over if over is not None and over > 0 else None,
        has_demo_data=spend.has_demo_data,
    )


def _mean_ms(minutes: Sequence[TeamMinute]) -> float | None:
    success = sum(minute.success for minute in minutes)
    return sum(minute.duration_us for minute in minutes) / success / 1000 if success else None
