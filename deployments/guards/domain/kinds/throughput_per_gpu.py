"""Throughput per GPU: inferences per busy second. Its test uses the busy time of one inference."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import NOT_KNOWN, CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    """Return the busy GPU milliseconds of one inference."""
    return sums.busy_ms_of_one


def _shows(busy_ms: float) -> str:
    return f"{1000 / busy_ms:,.0f}/s" if busy_ms else NOT_KNOWN


KIND: Final = CounterKind(
    name="throughput_per_gpu",
    label="Throughput per GPU",
    unit="/s",
    source="inferences per busy GPU second",
    most=1e9,
    has_max=False,
    is_timed=True,
    is_inverse=True,
    value=_value,
    test=Mean(),
    shows=_shows,
)
