"""One chart of a value per minute."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

from fleet.gpus.domain.intervals import minute_of
from fleet.telemetry.selectors.requests import MinutePoint
from portal.core import clock
from portal.ui import charts
from portal.ui.charts import Chart, Mark, Point


def minute_chart(
    by_role: Mapping[str, list[MinutePoint]],
    value: Callable[[MinutePoint], float | None],
    label: str,
    unit: str,
    marks: Sequence[Mark],
    threshold: float | None = None,
) -> Chart | None:
    """None when nothing was measured: an empty chart would look like zero.

    The running minute is left out: it is not over, so it would look like a fall.
    """
    running = minute_of(clock.now())
    found = [
        Point(at, role, amount)
        for role, points in by_role.items()
        for at, amount in _with_gaps([(one.at, value(one)) for one in points if one.at < running])
    ]
    if not any(point.value is not None for point in found):
        return None
    first = min(point.at for point in found)
    return charts.lines(
        label=label,
        points=found,
        unit=unit,
        threshold=threshold,
        marks=[mark for mark in marks if mark.at >= first],
    )


def _with_gaps(
    points: Sequence[tuple[datetime, float | None]],
) -> list[tuple[datetime, float | None]]:
    """A minute that nobody observed breaks the line instead of being drawn over."""
    found: list[tuple[datetime, float | None]] = []
    for at, value in points:
        if found and at - found[-1][0] > timedelta(minutes=1):
            found.append((found[-1][0] + timedelta(minutes=1), None))
        found.append((at, value))
    return found
