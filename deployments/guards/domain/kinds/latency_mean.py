"""Mean latency: Triton's counters give means only, percentiles come from histograms."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.duration_us / sums.timed / 1000 if sums.timed else None


KIND: Final = CounterKind(
    name="latency_mean",
    label="Mean latency",
    unit="ms",
    source="Triton counters, mean",
    most=3_600_000,
    ignore_below=2.0,
    default_ratio=1.25,
    is_timed=True,
    value=_value,
    test=Mean(),
)
