"""Vega-Lite specs in the design tokens, each with its data as a table.

Colours are CSS variables: the SVG is drawn in the page, so both themes follow without a redraw.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from portal.ui.vega.marks import CHANGES, Mark, iso, marks_on_bars, marks_on_lines, merge

_SERIES = tuple(f"var(--series-{number})" for number in range(1, 7))
_IDLE_COLOUR = "var(--idle)"
IDLE = "idle"
# Lines with at most this many points also show dots.
_FEW_POINTS = 6


@dataclass(frozen=True, slots=True)
class LegendEntry:
    text: str
    colour: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with its table: `spec` for the drawing, `header` and `rows` for the table, `label` for screen readers."""

    label: str
    spec: dict[str, Any]
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    legend: Sequence[LegendEntry] = field(default_factory=tuple)


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
    axis = {"format": time_format, "title": None, "labelOverlap": True, "ticks": False}
    at = {"field": "at", "type": "ordinal", "timeUnit": f"utc{time_unit}", "axis": axis}
    drawing: dict[str, Any] = {
        "data": {"values": [_value(bar, names) for bar in bars]},
        "mark": {"type": "bar", "cornerRadius": 1, "width": {"band": 0.72}},
        "encoding": {
            "x": at,
            "y": {"field": "value", "type": "quantitative", "axis": _value_axis(unit, digits)},
            "color": _colour_scale(names, colours),
            "order": {"field": "order"},
            "tooltip": [
                {"field": "at", "type": "temporal", "timeUnit": f"utc{time_unit}", "title": "UTC"},
                {"field": "series", "title": "Series"},
                {"field": "value", "title": unit, "format": f",.{digits}f"},
            ],
        },
    }
    cells = [(bar.at, bar.series, f"{bar.value:,.{digits}f}") for bar in bars]
    if not marks or not bars:
        return Chart(label, _base(label) | drawing, *_pivot(cells, names), _legend(names, colours))
    merged = merge(marks)
    cells += [(mark.at, CHANGES, mark.text) for mark in merged]
    spec = _base(label) | {"layer": [drawing, *marks_on_bars(merged, at, middle=_middle(bars))]}
    header, rows = _pivot(cells, [*names, CHANGES])
    return Chart(label, spec, header, rows, _legend(names, colours))


def lines(
    *,
    label: str,
    points: Sequence[Point],
    unit: str,
    threshold: float | None = None,
    marks: Sequence[Mark] = (),
    time_format: str = "%H:%M",
) -> Chart:
    """Return a chart of lines over time. "stable" and "candidate" have their own colours; the limit is dashed red."""
    names = _ordered([point.series for point in points])
    colours = _colours(names)
    layers = [_line_layer(points, names, colours, unit, threshold, time_format)]
    if threshold is not None:
        layers += _threshold(threshold, unit)
    if marks:
        layers += marks_on_lines(marks)
    header, rows = _pivot(
        [(p.at, p.series, "" if p.value is None else f"{p.value:,.4g}") for p in points], names
    )
    return Chart(label, _base(label) | {"layer": layers}, header, rows, _legend(names, colours))


def _value(bar: Bar, names: Sequence[str]) -> dict[str, Any]:
    return {
        "at": iso(bar.at),
        "series": bar.series,
        "value": float(bar.value),
        "order": names.index(bar.series),
    }


def _middle(bars: Sequence[Bar]) -> datetime:
    times = sorted({bar.at for bar in bars})
    return times[len(times) // 2]


def _line_layer(
    points: Sequence[Point],
    names: Sequence[str],
    colours: Sequence[str],
    unit: str,
    threshold: float | None,
    time_format: str,
) -> dict[str, Any]:
    mark: dict[str, Any] = {"type": "line", "strokeWidth": 1.8}
    mark["invalid"] = "break-paths-show-domains"
    if len(points) <= _FEW_POINTS:
        mark["point"] = {"size": 30}
    axis: dict[str, Any] = {"format": time_format, "title": None, "tickCount": _ticks(points)}
    axis |= {"labelOverlap": True, "labelFlush": False, "labelSeparation": 8}
    value = {"field": "value", "type": "quantitative"}
    return {
        "data": {
            "values": [{"at": iso(p.at), "series": p.series, "value": p.value} for p in points]
        },
        "mark": mark,
        "encoding": {
            "x": {"field": "at", "type": "temporal", "scale": {"type": "utc"}, "axis": axis},
            "y": value | {"scale": _value_scale(points, threshold), "axis": _value_axis(unit)},
            "color": _colour_scale(names, colours),
            "tooltip": [
                {"field": "at", "type": "temporal", "format": f"{time_format}:%S", "title": "UTC"},
                {"field": "series", "title": "Series"},
                {"field": "value", "title": unit, "format": ",.3~f"},
            ],
        },
    }


def _ticks(points: Sequence[Point]) -> int:
    """At most one tick per minute, because labels show minutes."""
    times = [point.at for point in points]
    minutes = int((max(times) - min(times)).total_seconds()) // 60 if times else 0
    return max(1, min(6, minutes))


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
    data = {"values": [{"limit": value, "text": f"limit {value:.3g} {unit}".strip()}]}
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
        IDLE: _IDLE_COLOUR,
    }
    return [own.get(name, _SERIES[i % len(_SERIES)]) for i, name in enumerate(names)]


def _colour_scale(names: Sequence[str], colours: Sequence[str]) -> dict[str, Any]:
    scale = {"domain": list(names), "range": list(colours)}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": None}


def _legend(names: Sequence[str], colours: Sequence[str]) -> tuple[LegendEntry, ...]:
    return tuple(LegendEntry(*pair) for pair in zip(names, colours, strict=True))


def _pivot(
    cells: Sequence[tuple[datetime, str, str]], names: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    by_time: dict[datetime, dict[str, str]] = {}
    for at, series, text in cells:
        by_time.setdefault(at, {})[series] = text
    rows = [
        [f"{at:%Y-%m-%d %H:%M}", *(values.get(name, "") for name in names)]
        for at, values in sorted(by_time.items())
    ]
    return ["UTC", *names], rows
