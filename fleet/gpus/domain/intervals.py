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
class LeaseInterval:
    """An interval of time. `end` None means open-ended."""

    start: datetime
    end: datetime | None = None

    def overlap_ms(self, start: datetime, end: datetime) -> int:
        """Return the milliseconds of this interval within [start, end).

        Both ends are rounded to milliseconds first, so that the parts of a divided interval sum to the whole.
        """
        low = max(milliseconds(self.start), milliseconds(start))
        high = milliseconds(end)
        if self.end is not None:
            high = min(high, milliseconds(self.end))
        return max(0, high - low)


def milliseconds(at: datetime) -> int:
    """Return the milliseconds since 1970, rounded down."""
    return (at - _EPOCH) // _MILLISECOND


def hour_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(minute=0, second=0, microsecond=0)


def minute_of(at: datetime) -> datetime:
    return at.astimezone(UTC).replace(second=0, microsecond=0)


def whole_hours(start: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Return the UTC hours that answer for a period, which ends after it starts. Costs are known by the hour.

    A period that lasts whole hours is moved back to the hour and keeps its length, so that the days of a zone with
    half hours follow each other without a gap or overlap. Any other is widened to the hours that it touches.
    """
    first = hour_of(start)
    if (end - start) % HOUR == timedelta(0):
        return first, first + (end - start)
    last = hour_of(end)
    return first, (last if last == end else last + HOUR)


def day_shift(offset: timedelta) -> timedelta:
    """Return the whole hours that, added to an hour, name the day that it belongs to: that of its last moment in
    the zone of this offset, as a day that starts within an hour is moved back to its start.
    """
    return -(-offset // HOUR) * HOUR


def hours_between(start: datetime, end: datetime) -> Iterator[datetime]:
    """Start times of the hours that overlap [start, end)."""
    hour = hour_of(start)
    while hour < end:
        yield hour
        hour += HOUR
