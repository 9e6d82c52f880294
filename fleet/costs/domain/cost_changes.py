"""Why costs changed from the period before: parts that sum to the difference exactly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from fleet.costs.domain.ledger import MICRO
from fleet.costs.domain.results import ZERO, GroupKey
from fleet.gpus.domain.intervals import HOUR_MS


class ChangeKind(StrEnum):
    """The cause of a part of the difference. Corrected: adjustments outweigh the hours of one of the periods."""

    HOURS = "hours"
    PRICE = "price"
    NEW = "new"
    GONE = "gone"
    IDLE = "idle"
    CORRECTED = "corrected"


@dataclass(frozen=True, slots=True)
class PeriodCost:
    """The cost of a group in one period, and its GPU time."""

    amount: Decimal = ZERO
    gpu_ms: int = 0

    @property
    def is_nothing(self) -> bool:
        return not self.amount and not self.gpu_ms

    @property
    def gpu_hours(self) -> Decimal:
        return (Decimal(self.gpu_ms) / HOUR_MS).quantize(MICRO)

    @property
    def usd_per_gpu_hour_amount(self) -> Decimal | None:
        """The mean price of a GPU for an hour. None without GPU time."""
        return self.amount * HOUR_MS / self.gpu_ms if self.gpu_ms > 0 else None

    def __add__(self, other: PeriodCost) -> PeriodCost:
        return PeriodCost(self.amount + other.amount, self.gpu_ms + other.gpu_ms)

    def __sub__(self, other: PeriodCost) -> PeriodCost:
        return PeriodCost(self.amount - other.amount, self.gpu_ms - other.gpu_ms)


NOTHING = PeriodCost()


@dataclass(frozen=True, slots=True)
class ChangePart:
    """One part of the difference. `before` and `now` are those of the whole group, which may have two parts."""

    key: GroupKey
    kind: ChangeKind
    amount: Decimal
    before: PeriodCost
    now: PeriodCost


@dataclass(frozen=True, slots=True)
class CostChange:
    """The change from [before_start, start) to [start, end). The parts sum to `difference_amount`; there are none
    while a price is missing in one of the periods. Without earlier data there are no amounts either.
    """

    before_start: datetime
    start: datetime
    end: datetime
    before_amount: Decimal = ZERO
    now_amount: Decimal = ZERO
    has_earlier_data: bool = False
    # The first hour of the ledger, where it is within the period before: what was earlier is not known.
    data_from: datetime | None = None
    is_price_missing: bool = False
    parts: tuple[ChangePart, ...] = ()

    @property
    def difference_amount(self) -> Decimal:
        return self.now_amount - self.before_amount


def split_difference(
    before: Mapping[GroupKey, PeriodCost], now: Mapping[GroupKey, PeriodCost]
) -> list[ChangePart]:
    """Split the difference between the sums of two periods, the largest parts first. Parts of $0 are left out."""
    keys = before.keys() | now.keys()
    parts = [
        ChangePart(key, kind, amount, old, new)
        for key in keys
        for old, new in [(before.get(key, NOTHING), now.get(key, NOTHING))]
        for kind, amount in _split_group(key, old, new)
        if amount
    ]
    return sorted(parts, key=lambda part: (-abs(part.amount), part.key, part.kind))


def _split_group(
    key: GroupKey, before: PeriodCost, now: PeriodCost
) -> list[tuple[ChangeKind, Decimal]]:
    """Price the changed hours at the price before; what the price changed is the rest, so that nothing is lost."""
    difference = now.amount - before.amount
    if key.is_idle:
        return [(ChangeKind.IDLE, difference)]
    if before.is_nothing:
        return [(ChangeKind.NEW, difference)]
    if now.is_nothing:
        return [(ChangeKind.GONE, difference)]
    if before.gpu_ms <= 0 or now.gpu_ms <= 0:
        return [(ChangeKind.CORRECTED, difference)]
    hours = (before.amount * (now.gpu_ms - before.gpu_ms) / before.gpu_ms).quantize(MICRO)
    return [(ChangeKind.HOURS, hours), (ChangeKind.PRICE, difference - hours)]
