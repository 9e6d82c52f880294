from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from html import unescape

import pytest
import vl_convert
from django.template import Context, Template

from portal.core.definitions.time_slots import Gap
from portal.ui.charts import Bar, Chart, Point, TimeWindow, lines, stacked_bars
from portal.ui.vega.marks import Mark

AT = datetime(2026, 11, 20, tzinfo=UTC)
NEXT = AT + timedelta(days=1)


def test_bars_keep_idle_last_and_grey() -> None:
    bars = [
        Bar(AT, "idle", Decimal(2)),
        Bar(AT, "vision", Decimal("3.5")),
        Bar(NEXT, "vision", Decimal(4)),
    ]

    chart = stacked_bars(label="Cost per day", bars=bars, unit="$")

    assert [(entry.text, entry.colour) for entry in chart.legend] == [
        ("vision", "var(--series-1)"),
        ("idle", "var(--idle)"),
    ]
    assert chart.header == ["UTC", "vision", "idle"]
    assert chart.rows == [
        ["2026-11-20 00:00", "$3.50", "$2.00"],
        ["2026-11-21 00:00", "$4.00", ""],
    ]


def test_the_table_has_the_exact_value_where_one_was_rounded() -> None:
    dollars = [Bar(AT, "vision", Decimal("0.605785")), Bar(NEXT, "vision", Decimal("3.5"))]
    times = [Point(AT, "stable", 5291.4), Point(NEXT, "stable", 42.0)]
    bars = stacked_bars(label="Cost per day", bars=dollars, unit="$")
    latency = lines(label="p95", points=times, unit="ms")

    html = [
        Template("{% chart 'x' spec %}").render(Context({"spec": spec})) for spec in (bars, latency)
    ]

    cells = [re.findall(r'<td class="num"( title="[^"]*")?>([^<]*)</td>', text) for text in html]
    assert cells == [
        [(' title="$0.605785"', "$0.61"), ("", "$3.50")],
        [(' title="5,291.4 ms"', "5.3 s"), ("", "42.0 ms")],
    ]


def test_lines_break_where_nothing_is_known_and_show_the_limit() -> None:
    points = [
        Point(AT, "stable", 42.0),
        Point(AT, "candidate", None),
        Point(NEXT, "candidate", 45.0),
    ]

    chart = lines(
        label="p95", points=points, unit="ms", threshold=60, marks=[Mark(NEXT, "5 to 25 %")]
    )

    assert chart.header == ["UTC", "stable", "candidate", "Changes"]
    assert chart.rows == [
        ["2026-11-20 00:00", "42.0 ms", "", ""],
        ["2026-11-21 00:00", "", "45.0 ms", "5 to 25 %"],
    ]
    text = json.dumps(chart.spec)
    assert "limit 60.0 ms" in text
    assert "5 to 25 %" in text
    assert '"value": null' in text
    assert [entry.colour for entry in chart.legend] == ["var(--stable)", "var(--candidate)"]


def test_changes_are_marked_on_bars_and_in_their_table() -> None:
    bars = [Bar(AT, "r1", Decimal(2)), Bar(NEXT, "r2", Decimal(3))]
    marks = [
        Mark(NEXT, "r2 promoted"),
        Mark(AT, "r1 deployed"),
        Mark(NEXT, "scaled to 2 to 4 replicas"),
    ]

    chart = stacked_bars(label="Daily cost", bars=bars, unit="$", marks=marks)

    assert chart.header == ["UTC", "r1", "r2", "Changes"]
    assert chart.rows == [
        ["2026-11-20 00:00", "$2.00", "", "r1 deployed"],
        ["2026-11-21 00:00", "", "$3.00", "r2 promoted, scaled to 2 to 4 replicas"],
    ]
    assert [entry.text for entry in chart.legend] == ["r1", "r2"]
    # No text is over the bars: a mark is a triangle, with its text on hover.
    drawn = vl_convert.vegalite_to_svg(chart.spec | {"width": 400})
    assert ">r1 deployed<" not in drawn
    assert "Changes: r2 promoted, scaled to 2 to 4 replicas" in drawn


def test_what_happens_often_in_one_hour_is_counted_on_its_mark() -> None:
    texts = ["r2 aborted"] * 3 + [f"r{number} promoted" for number in range(1, 11)]

    chart = stacked_bars(
        label="Daily cost",
        bars=[Bar(AT, "r1", Decimal(2))],
        unit="$",
        marks=[Mark(AT, text) for text in texts],
    )

    promoted = ", ".join(f"r{number} promoted" for number in range(1, 8))
    assert chart.rows[0][-1] == f"r2 aborted (3 times), {promoted}, and 3 more"


def test_specs_are_drawn_by_the_library_that_ships() -> None:
    bars = stacked_bars(label="bars", bars=[Bar(AT, "a", Decimal(1))], unit="$")
    curve = lines(label="curve", points=[Point(AT, "a", 1.0)], unit="ms", threshold=2)

    for chart in (bars, curve):
        spec = chart.spec | {"width": 400}
        assert "var(--series-1)" in vl_convert.vegalite_to_svg(spec)


def test_chart_tag_carries_the_spec_as_data_and_the_table() -> None:
    """In no script: htmx takes those out of every fragment that it swaps in."""
    chart = stacked_bars(
        label="Cost </script> &quot; \"'", bars=[Bar(AT, "a", Decimal(1))], unit="$"
    )

    html = Template('{% chart "costs" chart %}').render(Context({"chart": chart}))

    assert 'id="chart-costs"' in html
    assert "<script" not in html
    assert "</script" not in html
    spec = re.search(r"data-spec='([^']*)'", html)
    assert spec is not None
    assert json.loads(unescape(spec[1])) == chart.spec
    # Its own marks are as they are: escaped for HTML, they would be half of it.
    assert "&" not in spec[1]
    assert '<th scope="col"' in html
    assert "2026-11-20 00:00" in html


def test_a_limit_over_a_line_of_zeros_stays_in_sight() -> None:
    points = [Point(AT, "stable", 0.0), Point(NEXT, "stable", 0.0)]

    alone = lines(label="errors", points=points, unit="%").spec
    limited = lines(label="errors", points=points, unit="%", threshold=2).spec

    assert alone["layer"][0]["encoding"]["y"]["scale"] == {
        "zero": True,
        "domainMin": 0,
        "domainMax": 1,
    }
    assert "domainMax" not in limited["layer"][0]["encoding"]["y"]["scale"]


@pytest.mark.parametrize(
    ("amount", "axis", "cell"),
    [("0.030001", "$,.4~f", "$0.030"), ("0.1", "$,.2~f", "$0.10"), ("0", "$,.2~f", "$0")],
)
def test_a_few_cents_are_distinguished(amount: str, axis: str, cell: str) -> None:
    chart = stacked_bars(label="Cost", bars=[Bar(AT, "a", Decimal(amount))], unit="$")

    assert chart.spec["encoding"]["y"]["axis"]["format"] == axis
    assert list(chart.rows[0])[-1] == cell


MINUTE = timedelta(minutes=1)


def _window_of_ten_minutes() -> Chart:
    """Minutes 2, 3, 4 and 8 have values; the line is broken after 4, and 8 stands alone."""
    values = {2: 42.0, 3: 5300.0, 4: 0.05, 5: None, 8: 905.0, 9: None}
    gaps = [
        Gap(AT, AT + 2 * MINUTE, "not deployed yet"),
        Gap(AT + 5 * MINUTE, AT + 8 * MINUTE, "no requests"),
        Gap(AT + 9 * MINUTE, AT + 10 * MINUTE, "no requests"),
    ]
    return lines(
        label="Mean latency",
        points=[Point(AT + minute * MINUTE, "stable", value) for minute, value in values.items()],
        unit="ms",
        marks=[
            Mark(AT + 3 * MINUTE + timedelta(seconds=20), "r2 gets 10%"),
            Mark(AT + 6 * MINUTE, "stopped"),
            Mark(AT + 7 * MINUTE, "ready"),
            Mark(AT - MINUTE, "r1 deployed"),
        ],
        window=TimeWindow(AT, AT + 10 * MINUTE, MINUTE, gaps),
    )


def test_a_gap_is_one_row_with_its_reason_and_what_happened_in_it() -> None:
    chart = _window_of_ten_minutes()

    assert chart.header == ["UTC", "stable", "Changes"]
    assert chart.rows == [
        ["2026-11-20 00:00 to 00:02", "not deployed yet", ""],
        ["2026-11-20 00:02", "42.0 ms", ""],
        ["2026-11-20 00:03", "5.3 s", "r2 gets 10%"],
        ["2026-11-20 00:04", "50 µs", ""],
        ["2026-11-20 00:05 to 00:08", "no requests", "stopped, ready"],
        ["2026-11-20 00:08", "905 ms", ""],
        ["2026-11-20 00:09 to 00:10", "no requests", ""],
    ]
    assert chart.gap_text == "not deployed yet, no requests"
    first, *_, last = chart.timed_rows
    midnight = int(AT.timestamp()) * 1000
    assert (first.start, first.end) == (midnight, midnight + 120_000)
    assert (last.start, last.end) == (midnight + 540_000, midnight + 600_000)
    assert [row.is_gap for row in chart.timed_rows] == [
        True,
        False,
        False,
        False,
        True,
        False,
        True,
    ]
    assert [row.change for row in chart.timed_rows if row.change] == [
        "r2 gets 10%",
        "stopped, ready",
    ]


def test_gaps_are_shaded_and_a_value_between_two_is_a_dot() -> None:
    chart = _window_of_ten_minutes()

    bands, line, dots, marks = chart.spec["layer"]

    assert [(one["at"], one["until"]) for one in bands["data"]["values"]] == [
        ("2026-11-20T00:00:00Z", "2026-11-20T00:02:00Z"),
        ("2026-11-20T00:05:00Z", "2026-11-20T00:08:00Z"),
        ("2026-11-20T00:09:00Z", "2026-11-20T00:10:00Z"),
    ]
    assert [one["value"] for one in dots["data"]["values"]] == [905.0]
    assert [one["text"] for one in marks["data"]["values"]] == ["r2 gets 10%", "stopped", "ready"]
    first, last = line["encoding"]["x"]["scale"]["domain"]
    # By its parts: Vega's interpreter of expressions reads a number as a year.
    clock = dict.fromkeys(("hours", "minutes", "seconds"), 0)
    assert first == {"year": 2026, "month": 11, "date": 20, "utc": True} | clock
    assert last == first | {"minutes": 10}
    assert line["encoding"]["x"]["axis"]["tickCount"] == {"interval": "minutes", "step": 2}
    drawn = vl_convert.vegalite_to_svg(chart.spec | {"width": 300})
    assert drawn.count("var(--gap)") == 3


def test_the_table_is_the_data_of_the_crosshair() -> None:
    html = Template('{% chart "latency" chart %}').render(
        Context({"chart": _window_of_ten_minutes()})
    )

    midnight = int(AT.timestamp()) * 1000
    assert f'data-start="{midnight + 180_000}"' in html
    assert html.count("data-gap") == 3
    assert 'data-change="stopped, ready"' in html
    # One value for each line, and the instant.
    assert html.count("data-value") == 1
    assert html.count("data-instant") == 1
