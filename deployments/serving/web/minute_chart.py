"""The chart of a value per minute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from fleet.gpus.domain.intervals import minute_of
from fleet.telemetry.selectors.requests import MinutePoint
from portal.core import clock
from portal.ui import charts
from portal.ui.charts import Chart, Point
from portal.ui.vega.marks import Mark


def minute_chart(
    by_role: Mapping[str, list[MinutePoint]],
    value: Callable[[MinutePoint], float | None],
    label: str,
    unit: str,
    marks: Sequence[Mark],
    threshold: float | None = None,
) -> Chart | None:
    """Draw a line for each role. None when nothing was measured: an empty chart would look like zero.

    The current minute is left out: it is incomplete and would look like a drop.
    """
    current = minute_of(clock.now())
    series = {
        role: [(point.at, value(point)) for point in points if point.at < current]
        for role, points in by_role.items()
    }
    plotted = [
        Point(at, role, amount)
        for role, values in series.items()
        for at, amount in _with_gaps(values)
    ]
    if not any(point.value is not None for point in plotted):
        return None
    first = min(point.at for point in plotted)
    return charts.lines(
        label=label,
        points=plotted,
        unit=unit,
        threshold=threshold,
        marks=[mark for mark in marks if mark.at >= first],
    )


def _with_gaps(
    points: Sequence[tuple[datetime, float | None]],
) -> list[tuple[datetime, float | None]]:
    """Break the line at a minute that was not measured."""
    result: list[tuple[datetime, float | None]] = []
    for at, value in points:
        if result and at - result[-1][0] > timedelta(minutes=1):
            result.append((result[-1][0] + timedelta(minutes=1), None))
        result.append((at, value))
    return result
