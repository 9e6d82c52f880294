"""The load that a choice of GPUs has to bear, and what is left to its team."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

# Requests queue above this GPU utilisation.
BUSY_PERCENT: Final = 70


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamLimits:
    """The team's remaining quota and budget. None means no limit or unknown. Amounts are monthly.

    A budget that is not binding refuses nothing: approvers decide.
    """

    quota_left_gpus: int | None = None
    budget_left_amount: Decimal | None = None
    is_budget_binding: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """The expected load. `busy_us` is the measured GPU time of a request."""

    requests_per_second: int | None = None
    busy_us: int | None = None
    max_replicas: int = 1

    @property
    def replicas(self) -> int:
        """The replicas that are enough for a GPU utilisation of at most 70%. 1 if the GPU time is unknown."""
        if not self.requests_per_second or not self.busy_us:
            return 1
        return max(1, -(-self.requests_per_second * self.busy_us // (BUSY_PERCENT * 10_000)))
