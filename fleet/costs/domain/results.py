"""Results of the cost selectors. Amounts are Decimal US dollars; None is "not known"."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Final, NamedTuple

from fleet.costs.domain.ledger import MICRO
from fleet.costs.domain.unit_prices import UnitPrice, price_inferences, price_tokens
from fleet.gpus.domain.intervals import HOUR_MS
from fleet.telemetry.domain.energy import MJ_PER_KWH

ZERO = Decimal(0)


class GroupBy(StrEnum):
    TEAM = "team"
    MODEL = "model"
    DEPLOYMENT = "deployment"
    REVISION = "revision"
    CLUSTER = "cluster"


class Step(StrEnum):
    HOUR = "hour"
    DAY = "day"


class IdleRule(StrEnum):
    """The treatment of idle cost in a table: a row of its own, left out, or shared among the groups."""

    SEPARATE = "separate"
    HIDDEN = "hidden"
    BY_COST = "by-cost"
    BY_GPU_TIME = "by-gpu-time"

    @property
    def is_shared(self) -> bool:
        return self in (IdleRule.BY_COST, IdleRule.BY_GPU_TIME)


@dataclass(frozen=True, slots=True)
class UnpricedNode:
    """A node whose hours count as 0 in every sum until an admin loads a price and they are adjusted."""

    cluster_name: str
    node_name: str
    instance_type: str
    capacity_type: str
    region: str = ""
    hours: int = 0


@dataclass(frozen=True, slots=True)
class Spend:
    """The total spend. `allocated_amount` is sealed, `estimated_amount` is allocated in hours not sealed yet.

    `idle_amount` (sealed and estimated) is that of the whole fleet; it is 0 in results for teams.
    """

    allocated_amount: Decimal = ZERO
    estimated_amount: Decimal = ZERO
    idle_amount: Decimal = ZERO
    gpu_hours: Decimal = ZERO
    sealed_to: datetime | None = None
    has_demo_data: bool = False
    unpriced: tuple[UnpricedNode, ...] = ()

    @property
    def total_amount(self) -> Decimal:
        """The allocated costs, sealed and estimated, without idle."""
        return self.allocated_amount + self.estimated_amount


@dataclass(frozen=True, slots=True)
class MonthSpend:
    """The spend of a team this month. The estimate covers hours that are not sealed yet."""

    allocated_amount: Decimal
    estimated_amount: Decimal
    has_demo_data: bool

    @property
    def total_amount(self) -> Decimal:
        return self.allocated_amount + self.estimated_amount


class GroupKey(NamedTuple):
    """Identifies a row. Fields that are not part of the grouping are empty. A tuple, because pages sum
    thousands of groups.
    """

    team_slug: str = ""
    model: str = ""
    deployment: str = ""
    revision: str = ""
    cluster_name: str = ""
    is_idle: bool = False
    # All groups that are not named, together.
    is_others: bool = False

    @property
    def label(self) -> str:
        """The label of the row: "idle", "vision", "vision/detector", or "unattributed" for unregistered pods."""
        if self.is_others:
            return "others"
        if self.is_idle:
            return f"{self.cluster_name} idle".strip()
        if self.cluster_name:
            return self.cluster_name
        detail = self.model or self.deployment
        if self.revision:
            detail = f"{detail} {self.revision}"
        team = self.team_slug or "unattributed"
        if "/" in detail:
            return detail
        return f"{team}/{detail}" if detail else team


OTHERS: Final = GroupKey(is_others=True)


@dataclass(frozen=True, slots=True)
class CostRow:
    key: GroupKey
    allocated_amount: Decimal
    estimated_amount: Decimal
    gpu_hours: Decimal
    # Those in hours without a price, which count as $0 in the amounts: what is derived from an amount is not
    # known as long as there are any.
    unpriced_gpu_hours: Decimal = ZERO
    # Ratio of the observed GPU time in which a model executed or, where measured, GPU utilisation.
    utilisation: float | None = None
    utilisation_source: str = ""
    inferences: int | None = None
    # Of language models; None where no token was counted.
    tokens: int | None = None
    previous_amount: Decimal | None = None
    # Its part of idle, where idle is shared; not in the amount, nor in what is derived from it.
    idle_amount: Decimal = ZERO
    # Of its GPUs, and the GPU time that it was measured in; None: not known.
    energy_mj: int | None = None
    energy_ms: int = 0

    @property
    def amount(self) -> Decimal:
        return self.allocated_amount + self.estimated_amount

    @property
    def amount_with_idle(self) -> Decimal:
        return self.amount + self.idle_amount

    @property
    def used_amount(self) -> Decimal | None:
        """The part of the amount that paid for GPU time in use; None where use was not measured or a price is
        missing.
        """
        if self.utilisation is None or self.has_unpriced_hours:
            return None
        return (self.amount * Decimal(repr(self.utilisation))).quantize(MICRO)

    @property
    def energy_kwh(self) -> Decimal | None:
        """The energy in kWh over the measured GPU time, which may be less than all of it. None if none was measured."""
        if self.energy_mj is None:
            return None
        return (Decimal(self.energy_mj) / MJ_PER_KWH).quantize(MICRO)

    @property
    def energy_gpu_hours(self) -> Decimal:
        return (Decimal(self.energy_ms) / HOUR_MS).quantize(MICRO)

    @property
    def energy_ratio(self) -> float | None:
        """The part of its GPU time that the energy is of."""
        if self.energy_mj is None or not self.gpu_hours:
            return None
        return min(1.0, float(self.energy_gpu_hours / self.gpu_hours))

    @property
    def inference_price(self) -> UnitPrice | None:
        """The price per 1,000 inferences. None without a count, or if a price is missing, like the other unit prices."""
        return None if self.has_unpriced_hours else price_inferences(self.amount, self.inferences)

    @property
    def token_price(self) -> UnitPrice | None:
        return None if self.has_unpriced_hours else price_tokens(self.amount, self.tokens)

    @property
    def usd_per_1k_inferences_amount(self) -> Decimal | None:
        return self.inference_price.amount if self.inference_price else None

    @property
    def usd_per_1m_tokens_amount(self) -> Decimal | None:
        return self.token_price.amount if self.token_price else None

    @property
    def has_unpriced_hours(self) -> bool:
        """Whether some hours have no known price. The amount is too low until it is known."""
        return self.unpriced_gpu_hours > 0

    @property
    def is_unpriced(self) -> bool:
        """Whether none of its time has a price: its cost is not known, which is not $0."""
        return self.amount == 0 and 0 < self.gpu_hours <= self.unpriced_gpu_hours

    @property
    def change_ratio(self) -> float | None:
        """The change from the previous period: 0.12 means 12% more. None without a previous amount, and if a price
        is missing now.
        """
        if not self.previous_amount or self.has_unpriced_hours:
            return None
        return float(self.amount / self.previous_amount) - 1


@dataclass(frozen=True, slots=True)
class CostTable:
    """Rows, the most expensive first, and one idle row in results for the whole fleet.

    `others_amount` is that of the groups beyond the limit, of `row_count` in all. The amounts of the
    rows, the others and idle sum to `total_amount` exactly: idle as a row, or as the parts of the rows and
    others where it is shared, or not at all where it is hidden. `is_unpriced`: no group has a price, so
    that the total is not known.
    """

    start: datetime
    end: datetime
    rows: tuple[CostRow, ...]
    idle: CostRow | None
    total_amount: Decimal
    previous_total_amount: Decimal | None
    spend: Spend
    others_amount: Decimal = ZERO
    row_count: int = 0
    offset: int = 0
    is_unpriced: bool = False
    # What was done with idle: separate where it could not be shared.
    idle_rule: IdleRule = IdleRule.SEPARATE
    others_idle_amount: Decimal = ZERO

    @property
    def others_amount_with_idle(self) -> Decimal:
        return self.others_amount + self.others_idle_amount


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One bar segment: what a group cost in one hour or day."""

    at: datetime
    key: GroupKey
    amount: Decimal
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """The part of one holder, or of idle, in one hour of one node."""

    hour: datetime
    cluster_name: str
    node_name: str
    instance_type: str
    kind: str
    team_slug: str
    namespace: str
    workload_name: str
    labels: dict[str, str] = field(default_factory=dict)
    gpu_milliseconds: int = 0
    # Of all entries of the node's hour; None for an adjustment.
    node_gpu_milliseconds: int | None = None
    cost_amount: Decimal = ZERO
    # None: the price is not known, so the cost is 0 for now.
    usd_per_hour_amount: Decimal | None = ZERO
    price_source: str = ""
    capacity_type: str = "on-demand"
    node_uid: str = ""
    # Empty: not known any more.
    region: str = ""
    # None: an estimate.
    sealed_at: datetime | None = None
    is_demo: bool = False
    # Whose requests it paid for; empty: not attributed, or not split by callers.
    caller: str = ""

    @property
    def is_priced(self) -> bool:
        return self.usd_per_hour_amount is not None

    @property
    def is_sealed(self) -> bool:
        return self.sealed_at is not None


UNATTRIBUTED = "unattributed"
