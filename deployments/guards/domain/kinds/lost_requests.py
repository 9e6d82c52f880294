"""Lost requests: those that the gateway sent and that never came back. The server counts none of them."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Rate, two_decimals
from deployments.guards.domain.families.protocol import Reads


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.error_ratio


KIND: Final = CounterKind(
    name="lost_requests",
    label="Lost requests",
    unit="ratio",
    source="gateway counters",
    reads=Reads.GATEWAY,
    most=1.0,
    ignore_below=None,
    default_ratio=1.25,
    default_ratio_of_tokens=1.25,
    value=_value,
    test=Rate("never came back"),
    shows=two_decimals,
)
