"""GPU utilisation: the part of the time in which a model ran. It depends on the traffic weight."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.busy_ms / sums.observed_ms if sums.observed_ms else None


def _shows(ratio: float) -> str:
    return f"{ratio:.0%}"


KIND: Final = CounterKind(
    name="gpu_utilisation",
    label="GPU utilisation",
    unit="ratio",
    source="Triton busy time",
    most=1.0,
    not_compared="it depends on the traffic weight",
    value=_value,
    test=Mean(),
    shows=_shows,
)
