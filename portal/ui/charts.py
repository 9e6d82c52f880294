"""Vega-Lite specs in the design tokens, each with its data as a table.

Colours are CSS variables: the SVG is drawn in the page, so both themes follow without a redraw. Values are written
once, in the table, as people write them; the crosshair (static/js/crosshair.js) reads them there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any, Final

from portal.core.definitions import time_slots
from portal.core.definitions.figures import (
    format_exact_money,
    format_figure,
    format_milliseconds,
    format_money,
    format_percent,
)
from portal.core.definitions.time_slots import Gap
from portal.ui.vega.marks import CHANGES, Mark, draw_marks, iso, merge

_SERIES = tuple(f"var(--series-{number})" for number in range(1, 7))
_IDLE_COLOUR = "var(--idle)"
_GAP_COLOUR: Final = "var(--gap)"
IDLE = "idle"
# Lines with at most this many points also show dots.
_FEW_POINTS = 6
# Of an exact value: more are noise of the arithmetic.
_EXACT_DIGITS: Final = 10
_MILLISECOND: Final = timedelta(milliseconds=1)
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SHORTEST_STEP: Final = timedelta(minutes=1)


class Figure(str):
    """A value as people write it. `exact` is the value without rounding, empty where nothing was rounded."""

    __slots__ = ("exact",)
    exact: str

    def __new__(cls, text: str, exact: str = "") -> Figure:
        figure = super().__new__(cls, text)
        figure.exact = "" if _without_zeros(exact) == _without_zeros(text) else exact
        return figure


@dataclass(frozen=True, slots=True)
class LegendEntry:
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The times of a chart of slots: all of [start, end) is on its axis, and its gaps are shaded."""

    start: datetime
    end: datetime
    step: timedelta
    gaps: Sequence[Gap] = ()


@dataclass(frozen=True, slots=True)
class TableRow:
    """A row of a chart's table. It is of [start, end), in milliseconds since 1970; `change` is what happened then."""

    cells: Sequence[str]
    start: int
    end: int
    is_gap: bool
    change: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its table: `spec` for the drawing, `header` and `rows` for the table, `label` for screen readers.

    `intervals` are those of the rows if these are of times. A part of a chart with a time window can be enlarged.
    """

    label: str
    spec: dict[str, Any]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: Sequence[LegendEntry] = field(default_factory=tuple)
    intervals: Sequence[tuple[datetime, datetime]] = field(default_factory=tuple)
    window: TimeWindow | None = None

    @property
    def is_zoomable(self) -> bool:
        return self.window is not None

    @property
    def gaps(self) -> Sequence[Gap]:
        return () if self.window is None else self.window.gaps

    @property
    def gap_text(self) -> str:
        """Say why parts of the chart are shaded. Empty if none is."""
        return ", ".join(dict.fromkeys(gap.reason for gap in self.gaps))

    @property
    def timed_rows(self) -> list[TableRow]:
        """The rows with their times. Empty if the rows are not of times."""
        shaded = {gap.start for gap in self.gaps}
        has_changes = self.header[-1] == CHANGES
        return [
            TableRow(
                cells,
                _milliseconds(start),
                _milliseconds(end),
                is_gap=start in shaded,
                change=cells[-1] if has_changes else "",
            )
            for (start, end), cells in zip(self.intervals, self.rows, strict=False)
        ]


@dataclass(frozen=True, slots=True)
class Bar:
    """One part of one bar."""

    at: datetime
    series: str
    value: Decimal


@dataclass(frozen=True, slots=True)
class Point:
    """One point of one line; None breaks the line."""

    at: datetime
    series: str
    value: float | None


def stacked_bars(
    *,
    label: str,
    bars: Sequence[Bar],
    unit: str,
    time_unit: str = "yearmonthdate",
    time_format: str = "%-d %b",
    marks: Sequence[Mark] = (),
) -> Chart:
    """Return a chart of bars over time, one colour per series in order of first appearance; "idle" is grey, on top.
    Marks are at times of bars; those of one bar share a label.
    """
    names = _ordered([bar.series for bar in bars])
    colours = _colours(names)
    # More than 2 where all is a few cents, so that ticks differ.
    most = max((bar.value for bar in bars), default=Decimal(0))
    digits = 4 if 0 < most < Decimal("0.1") else 2
    axis: dict[str, Any] = {"format": time_format, "title": None, "labelPadding": 12}
    axis |= {"labelOverlap": True, "labelSeparation": 8}
    at = {"field": "at", "type": "ordinal", "timeUnit": f"utc{time_unit}", "axis": axis}
    drawing: dict[str, Any] = {
        "data": {"values": [_value(bar, names, unit) for bar in bars]},
        "mark": {"type": "bar", "cornerRadius": 1, "width": {"band": 0.72}},
        "encoding": {
            "x": at,
            "y": {"field": "value", "type": "quantitative", "axis": _value_axis(unit, digits)},
            "color": _colour_scale(names, colours),
            "order": {"field": "order"},
            "tooltip": [
                {"field": "at", "type": "temporal", "timeUnit": f"utc{time_unit}", "title": "UTC"},
                {"field": "series", "title": "Series"},
                {"field": "text", "title": unit},
            ],
        },
    }
    cells = [(bar.at, bar.series, _write(float(bar.value), unit)) for bar in bars]
    if not marks or not bars:
        table = _tabulate(cells, names)
        return _chart(label, _base(label) | drawing, table, _legend(names, colours))
    merged = merge(marks)
    cells += [(mark.at, CHANGES, mark.text) for mark in merged]
    spec = _base(label) | {"layer": [drawing, draw_marks(merged, at)]}
    return _chart(label, spec, _tabulate(cells, [*names, CHANGES]), _legend(names, colours))


def lines(
    *,
    label: str,
    points: Sequence[Point],
    unit: str,
    threshold: float | None = None,
    marks: Sequence[Mark] = (),
    time_format: str = "%H:%M",
    window: TimeWindow | None = None,
) -> Chart:
    """Return a chart of lines over time. "stable" and "candidate" have their own colours; the limit is dashed red.
    Without a window it is as long as its points.
    """
    names = _ordered([point.series for point in points])
    colours = _colours(names)
    x = _time_axis(points, time_format, window)
    layers = [_line_layer(points, names, colours, unit, threshold, x)]
    gaps = () if window is None else window.gaps
    if gaps:
        layers.insert(0, _gap_layer(gaps, x))
    if lone := _lone_values(points, names):
        layers.append(_dot_layer(lone, names, colours, x))
    if threshold is not None:
        layers += _threshold(threshold, unit)
    merged = merge(_marks_on_slots(marks, window))
    if merged:
        layers.append(draw_marks(merged, x))
    cells = [(p.at, p.series, _write(p.value, unit)) for p in points]
    cells += [(gap.start, name, gap.reason) for gap in gaps for name in names]
    cells += [(mark.at, CHANGES, mark.text) for mark in merged]
    columns = [*names, CHANGES] if merged else names
    table = _tabulate(cells, columns, window)
    spec = _base(label) | {"layer": layers}
    return _chart(label, spec, table, _legend(names, colours), window)


def _value(bar: Bar, names: Sequence[str], unit: str) -> dict[str, Any]:
    return {
        "at": iso(bar.at),
        "series": bar.series,
        "value": float(bar.value),
        "text": _write(float(bar.value), unit),
        "order": names.index(bar.series),
    }


def _write(value: float | None, unit: str) -> str:
    """Write a value with its unit as pages do. Empty for None. Units without a rule of their own stand above the axis."""
    if value is None:
        return ""
    if unit == "$":
        amount = Decimal(str(value))
        return Figure(format_money(amount), format_exact_money(amount))
    if unit == "ms":
        return Figure(format_milliseconds(value), f"{format_figure(value, _EXACT_DIGITS)} ms")
    if unit == "%":
        return Figure(format_percent(value / 100), f"{format_figure(value, _EXACT_DIGITS)}%")
    return Figure(format_figure(value, 4), format_figure(value, _EXACT_DIGITS))


def _without_zeros(text: str) -> str:
    """Return the text with numbers such as 2.50 as 2.5, so that only what was rounded differs."""
    number, space, unit = text.partition(" ")
    sign = "%" if number.endswith("%") else ""
    digits = number.removesuffix("%")
    digits = digits.rstrip("0").rstrip(".") if "." in digits else digits
    return f"{digits}{sign}{space}{unit}"


def _marks_on_slots(marks: Sequence[Mark], window: TimeWindow | None) -> list[Mark]:
    """Move the marks within the window to the start of their slot, where its values are."""
    if window is None:
        return list(marks)
    return [
        Mark(time_slots.floor_to(mark.at, window.step), mark.text)
        for mark in marks
        if window.start <= mark.at < window.end
    ]


def _time_axis(
    points: Sequence[Point], time_format: str, window: TimeWindow | None
) -> dict[str, Any]:
    times = [point.at for point in points] if window is None else [window.start, window.end]
    axis: dict[str, Any] = {"format": time_format, "title": None, "labelPadding": 12}
    axis |= {"labelOverlap": True, "labelFlush": False, "labelSeparation": 8}
    scale: dict[str, Any] = {"type": "utc"}
    if times:
        unit, step = time_slots.choose_tick_step(max(times) - min(times))
        axis["tickCount"] = {"interval": unit, "step": step}
    if window is not None:
        scale["domain"] = [_vega_time(window.start), _vega_time(window.end)]
    return {"field": "at", "type": "temporal", "scale": scale, "axis": axis}


def _vega_time(at: datetime) -> dict[str, Any]:
    """Return a time in UTC by its parts: with `ast: true` Vega reads a lone number of a domain as a year."""
    parts = {"year": at.year, "month": at.month, "date": at.day, "utc": True}
    return parts | {"hours": at.hour, "minutes": at.minute, "seconds": at.second}


def _line_layer(
    points: Sequence[Point],
    names: Sequence[str],
    colours: Sequence[str],
    unit: str,
    threshold: float | None,
    x: dict[str, Any],
) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 1.8}
    mark["invalid"] = "break-paths-show-domains"
    if len(points) <= _FEW_POINTS:
        mark["point"] = {"size": 30}
    value = {"field": "value", "type": "quantitative"}
    return {
        "data": {
            "values": [{"at": iso(p.at), "series": p.series, "value": p.value} for p in points]
        },
        "mark": mark,
        "encoding": {
            "x": x,
            "y": value | {"scale": _value_scale(points, threshold), "axis": _value_axis(unit)},
            "color": _colour_scale(names, colours),
        },
    }


def _gap_layer(gaps: Sequence[Gap], x: dict[str, Any]) -> dict[str, Any]:
    values = [{"at": iso(gap.start), "until": iso(gap.end), "reason": gap.reason} for gap in gaps]
    return {
        "data": {"values": values},
        "mark": {"type": "rect", "color": _GAP_COLOUR, "opacity": 1},
        "encoding": {"x": x, "x2": {"field": "until"}},
    }


def _lone_values(points: Sequence[Point], names: Sequence[str]) -> list[Point]:
    """Return the points that no line shows, because both neighbours are unknown."""
    lone: list[Point] = []
    for name in names:
        series = [point for point in points if point.series == name]
        times = set(time_slots.find_lone([(point.at, point.value) for point in series]))
        lone += [point for point in series if point.at in times]
    return lone


def _dot_layer(
    points: Sequence[Point], names: Sequence[str], colours: Sequence[str], x: dict[str, Any]
) -> dict[str, Any]:
    values = [{"at": iso(p.at), "series": p.series, "value": p.value} for p in points]
    return {
        "data": {"values": values},
        "mark": {"type": "point", "filled": True, "size": 30, "opacity": 1},
        "encoding": {
            "x": x,
            "y": {"field": "value", "type": "quantitative"},
            "color": _colour_scale(names, colours),
        },
    }


def _value_scale(points: Sequence[Point], threshold: float | None) -> dict[str, Any]:
    """Return a scale from zero, with a fixed maximum for lines of zeros. The limit is always visible."""
    is_flat = not threshold and not any(point.value for point in points)
    return {"zero": True, "domainMin": 0} | ({"domainMax": 1} if is_flat else {})


def _value_axis(unit: str, digits: int = 2) -> dict[str, Any]:
    """Dollars are shown at each tick, other units once above the axis."""
    if unit == "$":
        # The drawing measures labels in another font than the page's.
        room = {"minExtent": 48} if digits > 2 else {}
        return {"title": None, "tickCount": 4, "format": f"$,.{digits}~f"} | room
    above = {"titleAngle": 0, "titleAlign": "left", "titleBaseline": "bottom", "titleX": -24}
    return {"title": unit or None, "tickCount": 4, "titleY": -8} | above


def _base(label: str) -> dict[str, Any]:
    text = {"labelColor": "var(--text-3)", "titleColor": "var(--text-3)"}
    font = {"labelFont": "inherit", "titleFont": "inherit", "labelFontSize": 11}
    return {
        "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
        "description": label,
        "width": "container",
        "height": 180,
        "autosize": {"type": "fit", "contains": "padding"},
        "background": "transparent",
        "config": {
            "font": "inherit",
            "view": {"stroke": None},
            "axis": text
            | font
            | {
                "titleFontSize": 11,
                "titleFontWeight": "normal",
                "domain": False,
                "ticks": False,
                "labelPadding": 6,
                "gridColor": "var(--line)",
            },
            "axisX": {"grid": False, "domain": True, "domainColor": "var(--line-strong)"},
            "bar": {"discreteBandSize": {"band": 0.72}},
        },
    }


def _threshold(value: float, unit: str) -> list[dict[str, Any]]:
    data = {"values": [{"limit": value, "text": f"limit {_write(value, unit)}"}]}
    y = {"field": "limit", "type": "quantitative"}
    label_mark = {"type": "text", "color": "var(--bad)", "align": "right", "dy": -6, "x": "width"}
    return [
        {
            "data": data,
            "mark": {"type": "rule", "color": "var(--bad)", "strokeDash": [4, 4]},
            "encoding": {"y": y},
        },
        {"data": data, "mark": label_mark, "encoding": {"y": y, "text": {"field": "text"}}},
    ]


def _ordered(names: Sequence[str]) -> list[str]:
    unique = list(dict.fromkeys(names))
    return [name for name in unique if name != IDLE] + [name for name in unique if name == IDLE]


def _colours(names: Sequence[str]) -> list[str]:
    own = {
        "stable": "var(--stable)",
        "candidate": "var(--candidate)",
        "requested": "var(--text-3)",
        "others": "var(--text-3)",
        IDLE: _IDLE_COLOUR,
    }
    return [own.get(name, _SERIES[i % len(_SERIES)]) for i, name in enumerate(names)]


def _colour_scale(names: Sequence[str], colours: Sequence[str]) -> dict[str, Any]:
    scale = {"domain": list(names), "range": list(colours)}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def _legend(names: Sequence[str], colours: Sequence[str]) -> tuple[LegendEntry, ...]:
    return tuple(LegendEntry(*pair) for pair in zip(names, colours, strict=True))


@dataclass(frozen=True, slots=True)
class _Table:
    header: list[str]
    rows: list[list[str]]
    intervals: list[tuple[datetime, datetime]]


def _chart(
    label: str,
    spec: dict[str, Any],
    table: _Table,
    legend: Sequence[LegendEntry],
    window: TimeWindow | None = None,
) -> Chart:
    return Chart(label, spec, table.header, table.rows, legend, table.intervals, window)


def _tabulate(
    cells: Sequence[tuple[datetime, str, str]],
    names: Sequence[str],
    window: TimeWindow | None = None,
) -> _Table:
    """Return the rows by time. A gap is one row; what happened in a gap is in its row, and a slot of a line that is
    broken within a gap has no row of its own.
    """
    gaps = () if window is None else window.gaps
    starts = [gap.start for gap in gaps]
    by_time: dict[datetime, dict[str, str]] = {}
    for at, series, text in cells:
        place = bisect_right(starts, at) - 1
        is_in_gap = place >= 0 and at < gaps[place].end
        row = by_time.setdefault(starts[place] if is_in_gap else at, {})
        before = row.get(series)
        row[series] = f"{before}, {text}" if before and text else before or text
    ends = {gap.start: gap.end for gap in gaps}
    step = _step_of(sorted(by_time)) if window is None else window.step
    intervals = [(at, ends.get(at, at + step)) for at in sorted(by_time)]
    rows = [
        [_name_row(at, ends.get(at)), *(by_time[at].get(name, "") for name in names)]
        for at, _ in intervals
    ]
    return _Table(["UTC", *names], rows, intervals)


def _step_of(times: Sequence[datetime]) -> timedelta:
    """Return the shortest time between two rows."""
    differences = [after - before for before, after in pairwise(times)]
    return min(differences, default=_SHORTEST_STEP)


def _name_row(at: datetime, until: datetime | None) -> str:
    text = f"{at:%Y-%m-%d %H:%M}"
    if until is None:
        return text
    is_same_day = until.date() == at.date()
    return f"{text} to {until:%H:%M}" if is_same_day else f"{text} to {until:%Y-%m-%d %H:%M}"


def _milliseconds(at: datetime) -> int:
    return (at - _EPOCH) // _MILLISECOND
