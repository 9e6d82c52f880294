"""Mean inter-token latency: the time from one token of an answer to the next."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.later_token_us / sums.later_tokens / 1000 if sums.later_tokens else None


KIND: Final = CounterKind(
    name="inter_token_latency",
    label="Inter-token latency",
    unit="ms",
    source="counters of the language model's server, mean",
    most=3_600_000,
    ignore_below=1.0,
    default_ratio_of_tokens=1.25,
    is_timed=True,
    is_of_tokens=True,
    value=_value,
    test=Mean(),
)
