"""The hourly cost of GPUs that are released at a known time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True)
class EndingRate:
    """A rate in dollars per hour until `ends_at`."""

    ends_at: datetime
    usd_per_hour_amount: Decimal
