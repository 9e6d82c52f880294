"""Queue time: how long a request waits in Triton before the model runs."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.queue_us / sums.timed / 1000 if sums.timed else None


KIND: Final = CounterKind(
    name="queue_time",
    label="Queue time",
    unit="ms",
    source="Triton counters, mean",
    most=3_600_000,
    ignore_below=2.0,
    is_timed=True,
    value=_value,
    test=Mean(),
)
