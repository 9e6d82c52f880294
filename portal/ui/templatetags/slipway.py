"""Template tags and filters, available in every template; those of amounts are in amounts.py. docs/ui.md shows each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Any, Protocol

from django import template
from django.core.paginator import Page, Paginator
from django.forms import BoundField
from django.template import Context
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe

from portal.accounts.models import Team
from portal.core import clock
from portal.ui import formats, icons, teams, tones
from portal.ui.charts import Chart, Figure, TableRow
from portal.ui.context import TeamLink
from portal.ui.templatetags.amounts import UNKNOWN
from portal.ui.vega import bundle

register = template.Library()


class PartPage(Page[Any]):
    """A page of a list that is a part of another page. `name` is its query parameter, and the id of its section."""

    def __init__(self, rows: Any, number: int, paginator: Paginator[Any], name: str) -> None:
        super().__init__(rows, number, paginator)
        self.name = name


_IN_APOSTROPHES = {ord(char): f"\\u{ord(char):04X}" for char in "&<>'"}
_CURRENT = mark_safe(' aria-current="true"')
_SELECTED = mark_safe(" selected")
_GAP = mark_safe(" data-gap")
# Django writes it on each field with an error.
_INVALID = 'aria-invalid="true"'


@register.simple_tag
def icon(name: str, size: int = 16) -> SafeString:
    """Render a decorative Lucide icon; screen readers skip it. A page has about 20, of a few kinds."""
    return icons.svg(name, size)


@register.simple_tag(takes_context=True)
def paged(context: Context, rows: Sequence[Any], name: str, size: int = 25) -> PartPage:
    """The page of a list that is only a part of the page of the document; `name` is the id of its section. Its
    number is that query parameter. `{% include "ui/_pager.html" with page=… %}` links to the others.
    """
    request = context.get("request")
    number = request.GET.get(name) if request else None
    page = Paginator(rows, size).get_page(number)
    return PartPage(page.object_list, page.number, page.paginator, name)


@register.simple_tag(takes_context=True)
def page_url(context: Context, page: Page[Any], number: int) -> str:
    """Return the URL of another page of a list, with all else that the query says."""
    name = getattr(page, "name", "")
    query = context["request"].GET.copy()
    query[name or "page"] = str(number)
    return f"?{query.urlencode()}{f'#{name}' if name else ''}"


@register.inclusion_tag("ui/tags/pill.html")
def status_pill(state: str, text: str = "") -> dict[str, Any]:
    return {"tone": tones.get_tone(str(state)), "text": text or tones.describe_state(str(state))}


@register.inclusion_tag("ui/tags/traffic_bar.html")
def traffic_bar(
    stable_label: str,
    candidate_label: str,
    weight: int,
    observed: float | None = None,
    low: float | None = None,
    high: float | None = None,
    mirror: int = 0,
) -> dict[str, Any]:
    """Requested and observed traffic weight of the candidate, in percent.

    `low` and `high` bound the expected observation at this weight. With `mirror`, stable answers all
    requests and the values are about the copies.
    """
    return {
        "stable_label": stable_label,
        "candidate_label": candidate_label,
        "weight": weight,
        "mirror": mirror,
        "stable_weight": 100 - weight - mirror,
        "observed": observed,
        "observed_start": None if observed is None else round(max(0, 100 - observed), 3),
        "has_range": low is not None and high is not None,
        "range_start": None if high is None else round(100 - min(100, high), 3),
        "range_width": None if low is None or high is None else round(min(100, high) - low, 3),
        "low": low,
        "high": high,
    }


@register.inclusion_tag("ui/tags/mini_traffic.html")
def mini_traffic(weight: int | None, mirror: int = 0) -> dict[str, Any]:
    """Render the traffic weight of the candidate, or of copies to it, in percent. None means without a route."""
    part = mirror or weight or 0
    return {"weight": weight, "mirror": mirror, "part": part, "start": 100 - part}


@register.inclusion_tag("ui/tags/sparkline.html")
def sparkline(values: Sequence[float | None], label: str, tone: str = "") -> dict[str, Any]:
    """Render a line through the values, oldest first, with gaps where a value is unknown."""
    known = [float(value) for value in values if value is not None]
    low, high = (min([0.0, *known]), max(known)) if known else (0.0, 0.0)
    spread = (high - low) or 1.0
    step = 120 / max(len(values) - 1, 1)
    points = [
        None if value is None else f"{i * step:.1f},{26 - (float(value) - low) / spread * 24:.1f}"
        for i, value in enumerate(values)
    ]
    # A constant zero is never shown as a warning.
    tone = tone if high > 0 else "flat"
    return {"lines": _runs(points), "label": label, "tone": tone, "is_known": len(known) > 1}


class _Stair(Protocol):
    weight: int
    seconds: float
    duration: str
    text: str
    is_watch: bool


@register.inclusion_tag("ui/tags/staircase.html")
def staircase(stairs: Sequence[_Stair]) -> dict[str, Any]:
    """Draw the steps of a rollout: each as wide as its part of the time, and as high as its traffic weight. What is
    drawn can be read as a list too.
    """
    total = sum(stair.seconds for stair in stairs) or 1.0
    # Each has room for its weight and time.
    least = min(14.0, 100 / max(len(stairs), 1))
    rest = 100 - least * len(stairs)
    treads, x = [], 0.0
    for stair in stairs:
        width = least + rest * (stair.seconds / total)
        height = max(3, round(stair.weight * 0.86))
        treads.append(
            {
                "x": f"{x:.2f}",
                "width": f"{width:.2f}",
                "y": 108 - height,
                "height": height,
                "label_y": 102 - height,
                "weight": stair.weight,
                "duration": stair.duration,
                "text": stair.text,
                "is_watch": stair.is_watch,
            }
        )
        x += width
    return {"treads": treads}


def _runs(points: Sequence[str | None]) -> list[str]:
    runs: list[list[str]] = [[]]
    for point in points:
        if point is None:
            runs.append([])
        else:
            runs[-1].append(point)
    return [" ".join(run) for run in runs if len(run) > 1]


@register.simple_tag
def team_links(links: Sequence[TeamLink]) -> SafeString:
    """Render the links of the team switcher on one line and without a template: a platform admin has hundreds, on
    every page.
    """
    rows = [
        (link.address, _CURRENT if link.is_current else "", link.name, link.slug) for link in links
    ]
    return format_html_join("", '<a href="{}"{}>{} <span class="dim push">{}</span></a>', rows)


@register.simple_tag(takes_context=True)
def team_url(context: Context, name: str, *args: object) -> str:
    """Return the address of a page of the team in the context, else of the team that the page is about or, on a page
    of all teams, of the one whose page was opened last; without any, the home page. `name` is of a URL whose path
    begins with a team.
    """
    request, team = context.get("request"), context.get("team")
    if not isinstance(team, Team):
        team = teams.get_last_used(request) if request else None
    return reverse(name, args=[team.slug, *args]) if team else reverse("home")


@register.simple_tag
def team_options(choices: Sequence[Team], chosen: str) -> SafeString:
    """Render the options of a select of teams, without a template as in `team_links`; `chosen` is a slug or empty."""
    rows = [(team.slug, _SELECTED if team.slug == chosen else "", team.name) for team in choices]
    return format_html_join("", '<option value="{}"{}>{}</option>', rows)


@register.simple_tag
def meter(
    percent: float | Decimal | None,
    mark: float | Decimal | None = None,
    tone: str = "",
    label: str = "",
) -> SafeString:
    """Render a bar of `percent` (0..100); `mark` is the expected value now. None shows no fill. Tables have one in
    each row, for which a template takes long.
    """
    text = formats.NOT_KNOWN if percent is None else f"{float(percent):.0f}%"
    parts = []
    if percent is not None:
        width = round(min(max(float(percent), 0.0), 100.0), 2)
        parts.append(format_html('<rect class="fill" width="{}" height="6" rx="1" />', width))
    if mark is not None:
        x = round(min(max(float(mark), 0.0), 99.0), 2)
        parts.append(format_html('<rect class="mark" x="{}" width="1" height="6" />', x))
    return format_html(
        '<svg class="meter {}" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" '
        'aria-label="{}">{}</svg>',
        tone,
        f"{label}: {text}" if label else text,
        format_html_join("", "{}", ((part,) for part in parts)),
    )


@register.inclusion_tag("ui/tags/chart.html")
def chart(name: str, spec: Chart) -> dict[str, Any]:
    """`spec` comes from portal.ui.charts; the same numbers follow as a table.

    The spec is in an attribute, because htmx removes every script element from fragments. It is quoted by
    apostrophes, of which JSON can escape its own: &quot; for each quotation mark would double its size.
    """
    text = json.dumps(spec.spec, separators=(",", ":"), allow_nan=False)
    return {
        "name": name,
        "chart": spec,
        "is_timed": bool(spec.intervals),
        "body": _render_chart_rows(spec),
        "spec": SafeString(text.translate(_IN_APOSTROPHES)),
        "chart_bundle_version": bundle.VERSION,
    }


def _render_chart_rows(spec: Chart) -> SafeString:
    """Render the table's rows, without a template: a chart of a day has some 300. Those of times carry their times
    for the crosshair.
    """
    timed = [(_chart_row_attributes(row), row.cells) for row in spec.timed_rows]
    rows = timed or [(SafeString(""), cells) for cells in spec.rows]
    return format_html_join(
        "",
        "<tr{}><td>{}</td>{}</tr>",
        ((attributes, first, _render_numbers(rest)) for attributes, (first, *rest) in rows),
    )


def _chart_row_attributes(row: TableRow) -> SafeString:
    return format_html(
        ' data-start="{}" data-end="{}"{}{}',
        row.start,
        row.end,
        _GAP if row.is_gap else "",
        format_html(' data-change="{}"', row.change) if row.change else "",
    )


def _render_numbers(cells: Sequence[str]) -> SafeString:
    """Render values, each with the exact one on hover where it was rounded."""
    return format_html_join(
        "", '<td class="num"{}>{}</td>', ((_render_exact(cell), cell or "—") for cell in cells)
    )


def _render_exact(cell: str) -> SafeString:
    exact = cell.exact if isinstance(cell, Figure) else ""
    return format_html(' title="{}"', exact) if exact else SafeString("")


@register.inclusion_tag("ui/tags/checks.html")
def checks(items: Sequence[Any], fold: str = "") -> dict[str, Any]:
    """Render rows with `name`, `ok` (True, False, None = not known), `detail` and `fix`. With `fold`, the id of a
    part, those that pass are folded into it.
    """
    passed = [item for item in items if fold and _is_passed(item)]
    unmet = [item for item in items if item not in passed]
    return {"items": unmet, "passed": passed, "fold": fold}


def _is_passed(item: Any) -> bool:
    ok = item.get("ok") if isinstance(item, Mapping) else item.ok
    return ok is True


@register.simple_block_tag
def fold(content: SafeString, title: str, values: str = "") -> SafeString:
    """Fold fields behind a heading that shows their values in words. A field with an error opens the fold."""
    is_open = _INVALID in content
    context = {"content": content, "title": title, "values": values, "is_open": is_open}
    return render_to_string("ui/tags/fold.html", context)


@register.inclusion_tag("ui/tags/field.html")
def field(bound_field: BoundField, unit: str = "") -> dict[str, Any]:
    """Render label, input with its unit, hint and error, wired together for screen readers."""
    widget = bound_field.field.widget
    return {
        "field": bound_field,
        "unit": unit or widget.attrs.get("data-unit", ""),
        "is_checkbox": getattr(widget, "input_type", "") == "checkbox",
    }


@register.filter
def since(at: datetime | None) -> SafeString:
    """Render a relative time with the exact UTC on hover, refreshed in the browser."""
    if at is None:
        return UNKNOWN
    return format_html(
        '<time datetime="{}" title="{} UTC" data-since>{}</time>',
        at.isoformat(timespec="seconds"),
        f"{at:%Y-%m-%d %H:%M:%S}",
        formats.since(at, clock.now()),
    )


@register.filter
def initials(name: str) -> str:
    parts = [part for part in str(name).replace("-", " ").split() if part]
    return "".join(part[0] for part in parts[:2]) if len(parts) > 1 else str(name)[:2]
