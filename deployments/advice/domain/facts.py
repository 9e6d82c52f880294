"""Facts about a deployment or a node from which advice is decided. Hours are UTC, each one hour long."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Final

from deployments.sizing.domain.memory import FileModel, Need
from deployments.sizing.domain.ranking import Choice
from deployments.spec.domain.serving_spec import ServingSpec
from fleet.gpus.domain.money import CENT, HOURS_PER_MONTH

WEEK_HOURS: Final = 168
HOUR_MS: Final = 3_600_000
# Of an hour in which pods ran, this much must have been observed.
_OBSERVED: Final = 0.9
# Of the hours of a week; the others count as used.
_KNOWN: Final = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Hour:
    """One hour that the ledger charged. `observed_ms` is pod time whose counters were read; 0 is a gap.

    `held_ms` is the part of the hour in which a pod held its GPUs: less than all of it if it started meanwhile.
    `busy_ms` is the GPU time of the pods together: above an hour with several replicas.

    `requests` are those of callers, `served` those that succeeded; `queue_us` and `compute_us` are the sums of
    their times in Triton's queue and in the model, `inferences` the items of the `executions`.
    """

    start: datetime
    cost_amount: Decimal
    is_priced: bool = True
    requests: int = 0
    observed_ms: int = 0
    busy_ms: int = 0
    served: int = 0
    queue_us: int = 0
    compute_us: int = 0
    inferences: int = 0
    executions: int = 0
    held_ms: int = HOUR_MS
    # Sample history of the demo.
    is_made_up: bool = False

    @property
    def is_known(self) -> bool:
        return self.observed_ms > 0 and self.observed_ms >= self.held_ms * _OBSERVED

    @property
    def is_quiet(self) -> bool:
        """Whether the hour had no requests. Never true for an hour whose counters were not read."""
        return self.is_known and self.requests == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpotPrice:
    """The price of one replica on spot nodes, with the placement otherwise as it runs now."""

    usd_per_hour_amount: Decimal
    source: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentFacts:
    """The facts of a deployment. `hours` are charged hours since `since`, in order of time; hours without a row ran
    nothing.

    `replica_amount` is the price of one replica for an hour; None if it is not known. `supports` names what the
    cluster has, with True for installed. `choices` are those of the adviser that fit, the best first. `file` has
    the memory of one instance as read from the file; `max_batch_size` is that of the version, 0 without batching.
    `is_served_elsewhere` means that another deployment of the environment has the model among its additional
    models.
    """

    name: str
    spec: ServingSpec
    is_production: bool
    since: datetime
    until: datetime
    hours: Sequence[Hour]
    replica_amount: Decimal | None
    cluster: str = ""
    environment: str = ""
    model: str = ""
    version: int = 0
    is_served_elsewhere: bool = False
    max_batch_size: int = 0
    need: Need | None = None
    file: FileModel | None = None
    choices: Sequence[Choice] = ()
    memory_mib: int = 0
    spot: SpotPrice | None = None
    cold_start_seconds: int | None = None
    starts: int = 0
    supports: Mapping[str, bool] | None = None

    def has(self, option: str) -> bool:
        return bool(self.supports and self.supports.get(option))

    def last_week(self) -> list[Hour]:
        return [hour for hour in self.hours if _hours(hour.start, self.until) <= WEEK_HOURS]

    @property
    def hours_watched(self) -> int:
        return _hours(self.since, self.until)

    @property
    def made_up_hours(self) -> int:
        """The number of hours in the last week that come from sample history."""
        return sum(hour.is_made_up for hour in self.last_week())

    @property
    def runs_always(self) -> bool:
        """Whether each hour of the last week was charged at a known price, and nearly all were observed."""
        return _is_complete(self.last_week(), WEEK_HOURS)

    @property
    def month_amount(self) -> Decimal:
        """The cost of the last week, extrapolated to a month of 730 hours."""
        spent = sum((hour.cost_amount for hour in self.last_week()), Decimal(0))
        return (spent * HOURS_PER_MONTH / WEEK_HOURS).quantize(CENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """The facts of a node in the last week. `idle_hours` and `held_hours` count sealed hours; in a held one a pod
    held a GPU for any time.
    """

    name: str
    cluster: str
    instance_type: str
    capacity_type: str
    gpus: int
    usd_per_hour_amount: Decimal | None
    idle_hours: int
    held_hours: int
    made_up_hours: int = 0


def mean_utilisation(hours: Iterable[Hour]) -> float | None:
    """Return the busy GPU time as a part of the observed pod time, 0 to 1. None if nothing was observed."""
    known = [hour for hour in hours if hour.is_known]
    observed = sum(hour.observed_ms for hour in known)
    return min(1.0, sum(hour.busy_ms for hour in known) / observed) if observed else None


def busiest(hours: Iterable[Hour]) -> float:
    """Return the GPU time of the busiest hour, in replicas: 1.5 kept one and a half replicas busy."""
    return max((hour.busy_ms / HOUR_MS for hour in hours if hour.is_known), default=0.0)


def _is_complete(hours: Sequence[Hour], expected: int) -> bool:
    if len(hours) < expected or not all(hour.is_priced for hour in hours):
        return False
    return sum(hour.is_known for hour in hours) >= expected * _KNOWN


def _hours(start: datetime, end: datetime) -> int:
    return int((end - start).total_seconds() // 3600)
