"""The page of a node, also of one that is gone."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from fleet.capacity.domain.node_history import Line
from fleet.capacity.selectors import node_details, node_history
from fleet.capacity.selectors.node_devices import DeviceHolder, NodeDevice, NodeDevices
from fleet.capacity.selectors.node_history import NodePeriod
from fleet.capacity.web import board, node_starts
from fleet.costs.domain.results import Step
from fleet.gpus.domain.device_taints import DeviceTaint
from fleet.gpus.domain.devices import Device
from fleet.gpus.domain.intervals import HOUR, hour_of
from portal.accounts import roles
from portal.accounts.models import User
from portal.core import clock
from portal.core.definitions import time_slots
from portal.ui.access import people_only
from portal.ui.addresses import with_query
from portal.ui.charts import IDLE, Bar, Chart, Point, TimeWindow, lines, stacked_bars

# Days of the period, and the step of its charts.
_PERIODS: Final[Mapping[int, Step]] = {
    1: Step.HOUR,
    3: Step.HOUR,
    7: Step.DAY,
    30: Step.DAY,
    90: Step.DAY,
}
_DEFAULT: Final = 3
# A chart is part of the page: the longer the period, the fewer series have names.
_MOST_NAMED: Final = 6
_MOST_BARS: Final = 360
_TOTALS: Final = 25
_DEVICES: Final = 100
_GONE_PER_PAGE: Final = 50
_HOUR_FORMAT: Final = "%Y-%m-%dT%H"


@dataclass(frozen=True, slots=True)
class LineRow:
    line: Line
    url: str


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A device on a node's page. `holders` are labels with addresses, which may be empty. `state` and its tone say
    whether it is free.
    """

    device: Device
    holders: Sequence[tuple[DeviceHolder, str]]
    state: str
    tone: str
    taints: Sequence[DeviceTaint] = ()


@require_GET
@people_only
def node_page(request: HttpRequest, user: User, node_id: int) -> HttpResponse:
    details = node_details.details(actor=user, node_id=node_id)
    days = _days(request)
    period = node_history.period(actor=user, node=details.node, days=days, step=_PERIODS[days])
    older_than = _hour(request.GET.get("older_than", ""))
    page = node_history.hours(
        actor=user,
        node=details.node,
        start=hour_of(details.node.first_seen_at),
        end=older_than or hour_of(clock.now()) + HOUR,
    )
    older = f"{page.older_than.astimezone(UTC):{_HOUR_FORMAT}}" if page.older_than else ""
    context = {
        "details": details,
        "node": details.node,
        "may_request": roles.is_lead(user),
        "tiles": board.list_parts(details.tiles),
        "devices": _device_rows(details.devices),
        "more_devices": max(0, len(details.devices.rows) - _DEVICES),
        "period": period,
        "days": days,
        "periods": [
            (count, with_query(request, days=count, older_than=None)) for count in _PERIODS
        ],
        "idle_ratio": period.idle_amount / period.cost_amount if period.cost_amount else None,
        "totals": _rows(period.lines[:_TOTALS]),
        "more_totals": max(0, len(period.lines) - _TOTALS),
        "cost_chart": _cost_chart(period),
        "use_chart": _use_chart(period),
        "starts": node_starts.list_rows(user, details.node),
        "hours": [(hour, _rows(hour.lines)) for hour in page.hours],
        "newest_page": with_query(request, older_than=None) if older_than else "",
        "older_page": with_query(request, older_than=older) if older else "",
    }
    return render(request, "capacity/node.html", context)


@require_GET
@people_only
def gone_nodes_page(request: HttpRequest, user: User) -> HttpResponse:
    page = Paginator(node_details.list_gone(), _GONE_PER_PAGE).get_page(request.GET.get("page"))
    return render(request, "capacity/gone_nodes.html", {"page": page})


def _device_rows(devices: NodeDevices) -> list[DeviceRow]:
    return [
        DeviceRow(
            row.device,
            [(held, board.deployment_url(held.team_slug, held.deployment)) for held in row.holders],
            *_state_of(row),
            row.taints,
        )
        for row in devices.rows[:_DEVICES]
    ]


def _state_of(row: NodeDevice) -> tuple[str, str]:
    if row.holders:
        return "held", ""
    if row.taints:
        return "tainted", "warn"
    if not row.device.is_healthy:
        return "not offered", "warn"
    if row.is_free is None:
        return "not known", ""
    return ("free", "ok") if row.is_free else ("overlaps a held slice", "")


def _rows(lines_of_node: Sequence[Line]) -> list[LineRow]:
    return [
        LineRow(line, board.deployment_url(line.holder.team_slug, line.deployment))
        for line in lines_of_node
    ]


def _days(request: HttpRequest) -> int:
    text = request.GET.get("days", "")
    known = {str(days): days for days in _PERIODS}
    return known.get(text, _DEFAULT)


def _hour(text: str) -> datetime | None:
    """Parse an hour. None if it is invalid; the newest is shown then."""
    try:
        return datetime.strptime(text, _HOUR_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return None


def _cost_chart(period: NodePeriod) -> Chart | None:
    """The holders of the most GPU time have their own colours, the others share one, idle is grey. Without any price
    there is no chart: zeros would look as if the node were free.
    """
    if not period.by_step or not period.is_priced:
        return None
    holders = [line.holder for line in period.lines]
    ranked = [holder for holder in holders if holder.is_visible and not holder.is_idle]
    ranked = ranked[: max(1, min(_MOST_NAMED, _MOST_BARS // len(period.by_step) - 2))]
    sums: dict[tuple[datetime, str], Decimal] = defaultdict(Decimal)
    for at, parts in period.by_step.items():
        for line in parts:
            sums[at, _series(line, is_named=line.holder in ranked)] += line.cost_amount
    bars = [Bar(at, series, amount) for (at, series), amount in sums.items()]
    if period.step is Step.DAY:
        return stacked_bars(label="Cost of the node per day", bars=bars, unit="$")
    return stacked_bars(
        label="Cost of the node per hour",
        bars=bars,
        unit="$",
        time_unit="yearmonthdatehours",
        time_format=_time_format(period),
    )


def _series(line: Line, *, is_named: bool) -> str:
    if line.holder.is_idle:
        return IDLE
    return line.label if is_named or not line.holder.is_visible else "others"


def _use_chart(period: NodePeriod) -> Chart | None:
    """One line for each source; hours without a measurement are gaps."""
    measured = [point for point in period.use if point.ratio is not None]
    if not measured:
        return None
    sources = list(dict.fromkeys(_source(point.sources) for point in measured))
    points = [
        Point(
            point.at,
            source,
            point.ratio * 100
            if point.ratio is not None and _source(point.sources) == source
            else None,
        )
        for source in sources
        for point in period.use
    ]
    return lines(
        label="Utilisation of held GPUs",
        points=points,
        unit="%",
        time_format=_time_format(period),
        window=_window(period, {point.at for point in measured}),
    )


def _window(period: NodePeriod, measured: Collection[datetime]) -> TimeWindow:
    step = timedelta(days=1) if period.step is Step.DAY else timedelta(hours=1)
    start, joined_at = time_slots.floor_to(period.start, step), period.use[0].at

    def find_reason(at: datetime) -> str:
        return "not measured" if at >= joined_at else "not in the cluster yet"

    gaps = time_slots.find_gaps(
        measured, start=start, end=period.end, step=step, find_reason=find_reason
    )
    return TimeWindow(start, period.end, step, gaps)


def _source(sources: Sequence[str]) -> str:
    return " and ".join(sources)


def _time_format(period: NodePeriod) -> str:
    """Short, for phones: the hour within a day, else also its day of the month."""
    if period.step is Step.DAY:
        return "%-d %b"
    return "%H:%M" if period.end - period.start <= timedelta(days=1) else "%-d, %H:%M"
