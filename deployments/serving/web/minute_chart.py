"""The chart of a value of model servers, with a line for each role."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Protocol, TypeVar

from deployments.serving.domain import chart_events
from fleet.gpus.domain.intervals import minute_of
from portal.core import clock
from portal.core.definitions import time_slots
from portal.core.definitions.time_slots import TimedValues
from portal.ui import charts
from portal.ui.charts import Chart, Point, TimeWindow
from portal.ui.vega.marks import Mark

_MINUTE: Final = timedelta(minutes=1)
# The last minutes may not have been read yet: a chart ends with its last reading if that is not older.
_NOT_READ_YET: Final = timedelta(minutes=2)


class TimedReading(Protocol):
    @property
    def at(self) -> datetime: ...


Reading = TypeVar("Reading", bound=TimedReading)


@dataclass(frozen=True, slots=True)
class ChartSpan:
    """The times that a chart shows, [start, end), in slots of `step`. `find_reason` says why nothing was read at a
    time, given the times of all readings.
    """

    start: datetime
    end: datetime
    step: timedelta
    time_format: str
    find_reason: Callable[[datetime, Sequence[datetime]], str]


def minute_chart(
    by_role: Mapping[str, Sequence[Reading]],
    value: Callable[[Reading], float | None],
    label: str,
    unit: str,
    marks: Sequence[Mark],
    threshold: float | None = None,
    *,
    span: ChartSpan | None = None,
) -> Chart | None:
    """Draw a line for each role. None when nothing was measured: an empty chart would look like zero. Without a span
    the chart begins and ends with its readings, which are minutes.

    The current minute is left out: it is incomplete and would look like a drop.
    """
    current = minute_of(clock.now())
    series = {
        role: [(reading.at, value(reading)) for reading in readings if reading.at < current]
        for role, readings in by_role.items()
    }
    return draw_series(series, label, unit, marks, threshold, span=span)


def draw_series(
    series: Mapping[str, TimedValues],
    label: str,
    unit: str,
    marks: Sequence[Mark],
    threshold: float | None = None,
    *,
    span: ChartSpan | None = None,
) -> Chart | None:
    """Draw a line for each series. A time without a value was read, a time that is left out was not."""
    read_at = sorted({at for values in series.values() for at, _ in values})
    known = {at for values in series.values() for at, amount in values if amount is not None}
    if not known:
        return None
    shown = _end_with_readings(span or span_readings(read_at), read_at[-1])
    window = TimeWindow(shown.start, shown.end, shown.step, _find_gaps(shown, known, read_at))
    points = [
        Point(at, role, amount)
        for role, values in series.items()
        for at, amount in time_slots.break_line(values, shown.step)
    ]
    return charts.lines(
        label=label,
        points=points,
        unit=unit,
        threshold=threshold,
        marks=marks,
        time_format=shown.time_format,
        window=window,
    )


def span_readings(read_at: Sequence[datetime]) -> ChartSpan:
    """Return the time from the first to the last of these minutes, which are in order."""
    end = read_at[-1] + _MINUTE
    return ChartSpan(read_at[0], end, _MINUTE, "%H:%M", lambda *_: chart_events.NO_READINGS)


def _end_with_readings(span: ChartSpan, last: datetime) -> ChartSpan:
    read_until = min(last + span.step, span.end)
    end = read_until if span.end - read_until <= _NOT_READ_YET else span.end
    return ChartSpan(span.start, end, span.step, span.time_format, span.find_reason)


def _find_gaps(
    span: ChartSpan, known: set[datetime], read_at: Sequence[datetime]
) -> list[time_slots.Gap]:
    was_read = set(read_at)

    def find_reason(at: datetime) -> str:
        return chart_events.NO_REQUESTS if at in was_read else span.find_reason(at, read_at)

    return time_slots.find_gaps(
        known, start=span.start, end=span.end, step=span.step, find_reason=find_reason
    )
