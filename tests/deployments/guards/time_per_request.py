"""A made-up guard, as its file in kinds/ would be: time of the server for each request, failed ones too."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.duration_us / sums.requests / 1000 if sums.requests else None


KIND: Final = CounterKind(
    name="time_per_request",
    label="Time per request",
    unit="ms",
    source="made up for a test",
    most=1000,
    ignore_below=1.5,
    is_timed=True,
    value=_value,
    test=Mean(),
)
