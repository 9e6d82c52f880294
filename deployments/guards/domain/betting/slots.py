"""The counts of a revision in short slots of time, from which block lengths are chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SLOT_SECONDS: Final = 5


@dataclass(frozen=True, slots=True)
class Slot:
    """The counts of one pod, or several, in SLOT_SECONDS. `duration_us` is the sum over `timed` requests."""

    requests: int = 0
    failures: int = 0
    timed: int = 0
    duration_us: int = 0

    def __add__(self, other: Slot) -> Slot:
        return Slot(
            self.requests + other.requests,
            self.failures + other.failures,
            self.timed + other.timed,
            self.duration_us + other.duration_us,
        )

    @property
    def error_rate(self) -> float | None:
        return self.failures / self.requests if self.requests else None

    @property
    def log_mean(self) -> float | None:
        return math.log(self.duration_us / self.timed) if self.timed and self.duration_us else None


Series = Sequence[Slot]
