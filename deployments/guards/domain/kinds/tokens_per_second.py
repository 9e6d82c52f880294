"""Tokens per second of a request: those it got over the time that it spent until its last one.

Not those of a GPU: what a GPU generates in a second is what callers request of it, however fast it is.
"""

from __future__ import annotations

from typing import Final

from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.counters import NOT_KNOWN, CounterKind, Mean


def _value(sums: Sums, _: SideFacts) -> float | None:
    """Return the milliseconds of a token."""
    tokens = sums.first_tokens + sums.later_tokens
    return sums.token_us / tokens / 1000 if tokens else None


def _shows(ms_of_one: float) -> str:
    return f"{1000 / ms_of_one:,.1f}/s" if ms_of_one else NOT_KNOWN


KIND: Final = CounterKind(
    name="tokens_per_second",
    label="Tokens per second",
    unit="/s",
    source="tokens of a request in its time, mean",
    most=1e9,
    has_max=False,
    is_timed=True,
    is_of_tokens=True,
    is_inverse=True,
    value=_value,
    test=Mean(),
    shows=_shows,
)
