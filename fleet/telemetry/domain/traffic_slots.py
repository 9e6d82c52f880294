"""Traffic of a workload in slots of time: counts that are added, and figures that are computed from the sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime

from fleet.telemetry.domain.counters import mean_ms, ratio


@dataclass(frozen=True, slots=True)
class TrafficSlot:
    """The requests of a slot that begins at `at`. `seconds` are those in which it was read."""

    at: datetime
    seconds: int
    success: int
    failure: int
    duration_us: int
    first_tokens: int = 0
    first_token_us: int = 0

    @property
    def requests_per_second(self) -> float:
        return (self.success + self.failure) / max(1, self.seconds)

    @property
    def error_ratio(self) -> float | None:
        return ratio(self.failure, self.success + self.failure)

    @property
    def mean_latency_ms(self) -> float | None:
        return mean_ms(self.duration_us, self.success)

    @property
    def time_to_first_token_ms(self) -> float | None:
        return mean_ms(self.first_token_us, self.first_tokens)


def reduce_slots(
    slots: Iterable[TrafficSlot], find_start: Callable[[datetime], datetime]
) -> list[TrafficSlot]:
    """Add up the slots whose longer slot has the same start, oldest first. Each count is kept, and a longer slot
    without any of them is left out.
    """
    sums: dict[datetime, TrafficSlot] = {}
    for slot in slots:
        at = find_start(slot.at)
        sums[at] = _add(sums.get(at, TrafficSlot(at, 0, 0, 0, 0)), slot)
    return [sums[at] for at in sorted(sums)]


def _add(total: TrafficSlot, slot: TrafficSlot) -> TrafficSlot:
    return TrafficSlot(
        at=total.at,
        seconds=total.seconds + slot.seconds,
        success=total.success + slot.success,
        failure=total.failure + slot.failure,
        duration_us=total.duration_us + slot.duration_us,
        first_tokens=total.first_tokens + slot.first_tokens,
        first_token_us=total.first_token_us + slot.first_token_us,
    )
