"""The interface of a guard: one file of `kinds/` that states what it reads, its limits, its test and its messages.

`catalogue` lists them. The plan form, REST, rollouts, pages and docs/evidence.md follow from that list; a guard of
an existing family (`families`) needs nothing else. Pure.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol


class Reads(StrEnum):
    """The source of a guard's numbers. Each source is read once for all guards of a step."""

    SERVER = "counters of the server"
    GATEWAY = "counters of the gateway"
    HISTOGRAM = "histograms in Prometheus"
    QUERY = "a query on Prometheus"


class Protects(StrEnum):
    """The property of a service that a guard keeps from becoming worse; forms group guards by it."""

    ERRORS = "errors"
    SPEED = "speed"
    MONEY = "money"
    OWN = "own"


class GuardKind(Protocol):
    """A registered guard. A plan states its limits under `name`."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def unit(self) -> str:
        """The unit of its limits: "ratio" is 0 to 1, which people read and write in percent."""

    @property
    def source(self) -> str:
        """The source of the figure, as shown beside the label."""

    @property
    def reads(self) -> Reads: ...

    @property
    def protects(self) -> Protects: ...

    @property
    def describe_test(self) -> str:
        """The test in words, for docs/evidence.md."""
