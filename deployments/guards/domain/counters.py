"""What one side of a rollout did in some time, and the figures that follow from it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Final

from deployments.guards.domain.limits import COUNTED, Metric


@dataclass(frozen=True, slots=True)
class Sums:
    """Increases of Triton's counters over all pods of one revision."""

    success: int = 0
    failure: int = 0
    inferences: int = 0
    duration_us: int = 0
    queue_us: int = 0
    busy_ms: int = 0
    observed_ms: int = 0
    # Of the successes, those whose time is not in the sums of times.
    untimed: int = 0

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

    def to_json(self) -> dict[str, int]:
        return asdict(self)


_NAMES = tuple(field.name for field in fields(Sums))


@dataclass(frozen=True, slots=True)
class Facts:
    """Figures of one side that counters do not contain; None where nothing measures them.

    `usd_per_gpu_hour` is for comparing, not an amount that anyone is charged.
    """

    gpu_memory_gib: float | None = None
    usd_per_gpu_hour: float | None = None


NO_SUMS: Final = Sums()
NO_FACTS: Final = Facts()


def from_json(stored: Mapping[str, Any] | None) -> Sums:
    return Sums(**(stored or {}))


def value_of(metric: Metric, sums: Sums, facts: Facts) -> float | None:
    """The value in the metric's unit, where more is worse: for throughput the busy GPU milliseconds
    of one inference. None where there is nothing to divide by.
    """
    if metric in COUNTED:
        return sums.error_ratio
    if metric == Metric.GPU_MEMORY:
        return facts.gpu_memory_gib
    if metric == Metric.GPU_UTILISATION:
        return sums.busy_ms / sums.observed_ms if sums.observed_ms else None
    if metric in (Metric.LATENCY_MEAN, Metric.QUEUE_TIME):
        spent = sums.duration_us if metric == Metric.LATENCY_MEAN else sums.queue_us
        return spent / sums.timed / 1000 if sums.timed else None
    return _per_inference(metric, sums, facts)


def _per_inference(metric: Metric, sums: Sums, facts: Facts) -> float | None:
    if not sums.inferences or not sums.busy_ms:
        return None
    busy_ms = sums.busy_ms / sums.inferences
    if metric == Metric.THROUGHPUT_PER_GPU:
        return busy_ms
    price = facts.usd_per_gpu_hour
    return None if price is None else busy_ms * 1000 / 3_600_000 * price
