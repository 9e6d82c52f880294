"""Time in whole milliseconds, cut into UTC hours. Intervals are half open: [start, end)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

HOUR = timedelta(hours=1)
HOUR_MS = 3_600_000
_MILLISECOND = timedelta(milliseconds=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Interval:
    """`end` None means open-ended."""

    start: datetime
    end: datetime | None = None

    def overlap_ms(self, start: datetime, end: datetime) -> int:
        """Milliseconds of this interval within [start, end).

        Both ends are rounded to milliseconds first, so that the parts of a divided interval sum to the
        whole.
        """
        low = max(milliseconds(self.start), milliseconds(start))
        high = milliseconds(end)
        if self.end is not None:
            high = min(high, milliseconds(self.end))
        return max(0, high - low)


def milliseconds(at: datetime) -> int:
    """Since 1970, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def minute_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def hours_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """Start times of the hours that overlap [start, end)."""
    hour = hour_of(start)
    while hour < end:
        yield hour
        hour += HOUR
