"""Guards on counters of the server or of the gateway: what the file of each states.

A guard has a value, which is computed from the sums of one side, and one of three tests:

    Rate        requests that something happened to, each of them counted (`betting/rates`)
    Mean        a mean over blocks of time, by how many of them are above the limit
    Measured    a figure without samples: it is within the limit or not
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from deployments.guards.domain.betting.rates import Count
from deployments.guards.domain.counters import SideFacts, Sums
from deployments.guards.domain.families.protocol import Protects, Reads
from portal.core.definitions.figures import format_milliseconds

NOT_KNOWN: Final = "not known"


def failures(sums: Sums) -> Count:
    return Count(sums.requests, sums.failure)


@dataclass(frozen=True, slots=True)
class Rate:
    """A test of how often `event` happens to a request ("12 of 400 requests failed"). `count` says to how many."""

    event: str
    count: Callable[[Sums], Count] = failures

    description = "two rates, each request counted"


@dataclass(frozen=True, slots=True)
class Mean:
    description = "signs of blocks"


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """A figure without samples, with the messages of its verdicts."""

    missing: str
    above: str
    within: str

    description = "one reading"


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterKind:
    """A guard on counters. `value` is in `unit` (None if there is nothing to divide by), `most` is the highest
    limit of a plan.

    `ignore_below` is the default floor of its ratio, None for that of rates.
    """

    name: str
    label: str
    unit: str
    source: str
    most: float
    value: Callable[[Sums, SideFacts], float | None]
    test: Rate | Mean | MeasuredFigure
    reads: Reads = Reads.SERVER
    ignore_below: float | None = 0.0
    # Why it has no limit relative to stable, after "not compared:"; empty: it has one.
    not_compared: str = ""
    # AWS Neuron devices: a guard that is not measured on them would hold every step.
    is_measured_on_neuron: bool = True
    has_max: bool = True
    # Of a plan that states no guards; None: it is not one of them.
    default_ratio: float | None = None
    # The same for a language model.
    default_ratio_of_tokens: float | None = None
    # Made of times, which the load and the age of a pod change.
    is_timed: bool = False
    # Made of what only servers of language models count.
    is_of_tokens: bool = False
    # Where less is worse, `value` is the reciprocal of what is shown.
    is_inverse: bool = False
    # The field of Facts that it needs, and what to say without it.
    fact: str = ""
    missing_fact: str = ""
    shows: Callable[[float], str] | None = None

    @property
    def is_rate(self) -> bool:
        return isinstance(self.test, Rate)

    @property
    def protects(self) -> Protects:
        if self.is_rate:
            return Protects.ERRORS
        return Protects.SPEED if self.unit == "ms" or self.is_of_tokens else Protects.MONEY

    @property
    def describe_test(self) -> str:
        return self.test.description

    def format(self, value: float | None) -> str:
        """Format the value as people read it."""
        if value is None:
            return NOT_KNOWN
        if self.shows is not None:
            return self.shows(value)
        return format_milliseconds(value) if self.unit == "ms" else f"{value:,.1f} {self.unit}"


def two_decimals(ratio: float) -> str:
    return f"{ratio:.2%}"
