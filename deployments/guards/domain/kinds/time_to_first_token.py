"""Mean time to first token: how long a request of a language model waits until its answer begins."""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    return sums.first_token_us / sums.first_tokens / 1000 if sums.first_tokens else None


KIND: Final = CounterKind(
    name="time_to_first_token",
    label="Time to first token",
    unit="ms",
    source="counters of the language model's server, mean",
    most=3_600_000,
    ignore_below=2.0,
    default_ratio_of_tokens=1.25,
    is_timed=True,
    is_of_tokens=True,
    value=_value,
    test=Mean(),
)
