"""The counts of one side of a rollout in some time, and the figures that follow from them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Sums:
    """The increases of the server's counters over all pods of one revision."""

    success: int = 0
    failure: int = 0
    inferences: int = 0
    duration_us: int = 0
    queue_us: int = 0
    busy_ms: int = 0
    observed_ms: int = 0
    # Of the successes, those whose time is not in the sums of times.
    untimed: int = 0
    # Of language models. An aborted request is neither a success nor a failure: its client left.
    aborted: int = 0
    tokens: int = 0
    first_tokens: int = 0
    first_token_us: int = 0
    later_tokens: int = 0
    later_token_us: int = 0

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, n) + getattr(other, n) for n in _NAMES))

    @property
    def requests(self) -> int:
        return self.success + self.failure

    @property
    def timed(self) -> int:
        return self.success - self.untimed

    @property
    def error_ratio(self) -> float | None:
        return self.failure / self.requests if self.requests else None

    @property
    def busy_ms_of_one(self) -> float | None:
        """The busy GPU milliseconds of one inference."""
        return self.busy_ms / self.inferences if self.inferences and self.busy_ms else None

    @property
    def has_tokens(self) -> bool:
        """Whether the server counts what language models do: each names other tokens."""
        return bool(self.tokens or self.first_tokens or self.aborted)

    @property
    def token_us(self) -> int:
        """The sum of the times, in microseconds, that requests waited for each of their tokens."""
        return self.first_token_us + self.later_token_us

    def to_json(self) -> dict[str, int]:
        """Return the sums as JSON without zeros, since most servers are no language models."""
        return {name: value for name, value in asdict(self).items() if value}


_NAMES = tuple(field.name for field in fields(Sums))


@dataclass(frozen=True, slots=True)
class SideFacts:
    """The figures of one side that counters do not contain. None if nothing measures them.

    `usd_per_gpu_hour` is for comparing, not an amount that anyone is charged.
    """

    gpu_memory_gib: float | None = None
    usd_per_gpu_hour: float | None = None
    # 1 where its server counts requests whose clients left.
    aborts_counted: float | None = None


NO_SUMS: Final = Sums()
NO_FACTS: Final = SideFacts()


def from_json(stored: Mapping[str, Any] | None) -> Sums:
    return Sums(**(stored or {}))
