"""Error ratio: requests that the server answered with an error."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Rate, two_decimals


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.error_ratio


KIND: Final = CounterKind(
    name="error_rate",
    label="Error ratio",
    unit="ratio",
    source="Triton request counters",
    most=1.0,
    ignore_below=None,
    default_ratio=1.25,
    default_ratio_of_tokens=1.25,
    value=_value,
    test=Rate("failed"),
    shows=two_decimals,
)
