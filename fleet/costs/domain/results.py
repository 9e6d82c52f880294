"""What the cost selectors answer. Amounts are Decimal US dollars; None is "not known"."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

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


@dataclass(frozen=True, slots=True)
class UnpricedNode:
    """Its hours stay unsealed, and out of every sum, until an admin loads a price."""

    cluster_name: str
    node_name: str
    instance_type: str
    capacity_type: str


@dataclass(frozen=True, slots=True)
class Spend:
    """`allocated_amount` is sealed, `estimated_amount` is allocated in hours not sealed yet.

    `idle_amount` (sealed and estimated) is the fleet's; it is zero when asked for some teams.
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
        """Everything allocated, sealed or not, without idle."""
        return self.allocated_amount + self.estimated_amount


@dataclass(frozen=True, slots=True)
class GroupKey:
    """What a row is about. Fields that the grouping does not tell apart are empty."""

    team_slug: str = ""
    model: str = ""
    deployment: str = ""
    revision: str = ""
    cluster_name: str = ""
    is_idle: bool = False

    @property
    def label(self) -> str:
        """ "idle", "vision", "vision/detector", or "unattributed" for what nobody registered."""
        if self.is_idle:
            return f"{self.cluster_name} idle".strip()
        if self.cluster_name:
            return self.cluster_name
        detail = self.model or self.deployment
        if self.revision:
            detail = f"{detail} r{self.revision}"
        team = self.team_slug or "unattributed"
        if "/" in detail:
            return detail
        return f"{team}/{detail}" if detail else team


@dataclass(frozen=True, slots=True)
class CostRow:
    key: GroupKey
    allocated_amount: Decimal
    estimated_amount: Decimal
    gpu_hours: Decimal
    # Share of the observed GPU time in which a model executed or, where measured, GPU utilisation.
    utilisation: float | None = None
    utilisation_source: str = ""
    inferences: int | None = None
    usd_per_1k_inferences_amount: Decimal | None = None
    previous_amount: Decimal | None = None

    @property
    def amount(self) -> Decimal:
        return self.allocated_amount + self.estimated_amount

    @property
    def change_ratio(self) -> float | None:
        """0.12 is 12 % more than in the period before; None when there was nothing before."""
        if not self.previous_amount:
            return None
        return float(self.amount / self.previous_amount) - 1


@dataclass(frozen=True, slots=True)
class CostTable:
    """Rows with the dearest first, then one idle row where idle is asked for.

    The amounts of the rows sum to `total_amount` exactly.
    """

    start: datetime
    end: datetime
    rows: tuple[CostRow, ...]
    idle: CostRow | None
    total_amount: Decimal
    previous_total_amount: Decimal | None
    spend: Spend


@dataclass(frozen=True, slots=True)
class CostPoint:
    """One bar segment: what a group cost in one hour or day."""

    at: datetime
    key: GroupKey
    amount: Decimal
    is_estimated: bool = False


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One holder's (or the idle) part of one hour of one node."""

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
    cost_amount: Decimal = ZERO
    usd_per_hour_amount: Decimal = ZERO
    price_source: str = ""
    is_sealed: bool = True
    is_demo: bool = False
