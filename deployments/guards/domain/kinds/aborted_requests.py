"""Aborted requests: those whose client left before the answer was complete, as the server counts them.

Impatient clients are the same on both sides, so more of them at the candidate say that it is slow or hangs.
"""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.betting.rates import Count
from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import CounterKind, Rate, two_decimals


def _count(sums: Sums) -> Count:
    return Count(sums.requests + sums.aborted, sums.aborted)


def _value(sums: Sums, facts: SideFacts) -> float | None:
    counted = _count(sums)
    if facts.aborts_counted is None or not counted.requests:
        return None
    return counted.events / counted.requests


KIND: Final = CounterKind(
    name="aborted_requests",
    label="Aborted requests",
    unit="ratio",
    source="counters of the language model's server",
    most=1.0,
    ignore_below=None,
    is_of_tokens=True,
    fact="aborts_counted",
    missing_fact="one of the servers does not count aborted requests",
    value=_value,
    test=Rate("were aborted", _count),
    shows=two_decimals,
)
