"""Cost of 1,000 inferences: their busy GPU time at the list price, for comparing and not for charging."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean

_MS_IN_AN_HOUR: Final = 3_600_000


def _value(sums: Sums, facts: SideFacts) -> float | None:
    busy_ms, price = sums.busy_ms_of_one, facts.usd_per_gpu_hour
    return None if busy_ms is None or price is None else busy_ms * 1000 / _MS_IN_AN_HOUR * price


def _shows(usd: float) -> str:
    return f"${usd:.4f}"


KIND: Final = CounterKind(
    name="cost_per_1000",
    label="Cost per 1,000",
    unit="$",
    source="list price of the busy GPU time",
    most=1e6,
    is_timed=True,
    fact="usd_per_gpu_hour",
    missing_fact="the price of its node is not known",
    value=_value,
    test=Mean(),
    shows=_shows,
)
