"""Read the Costs page's period and grouping from the query. Invalid values fall back to the default, and the page
says so of dates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from django import forms

from fleet.costs.domain.results import GroupBy, IdleRule, Step
from portal.ui.lists import day_field

RANGES = (
    ("month", "This month"),
    ("last-month", "Last month"),
    ("30d", "30 days"),
    ("7d", "7 days"),
    ("24h", "24 hours"),
)
GROUPS = (
    (GroupBy.TEAM, "Team"),
    (GroupBy.MODEL, "Model"),
    (GroupBy.DEPLOYMENT, "Deployment"),
    (GroupBy.REVISION, "Revision"),
    (GroupBy.CLUSTER, "Cluster"),
)
IDLE_RULES = (
    (IdleRule.SEPARATE, "Separate"),
    (IdleRule.HIDDEN, "Hidden"),
    (IdleRule.BY_COST, "Shared by cost"),
    (IdleRule.BY_GPU_TIME, "Shared by GPU time"),
)
_DAY = timedelta(days=1)
_BY_HOUR_UP_TO = timedelta(days=2)
_LONGEST = timedelta(days=400)
ROWS_PER_PAGE = 40
_LAST_PAGE = 2000


@dataclass(frozen=True, slots=True)
class CostQuery:
    """A query of costs: Hours that start in [start, end), UTC. `range_name` is empty for custom dates."""

    range_name: str
    start: datetime
    end: datetime
    group_by: GroupBy
    team_slug: str
    # Of the table, from 1.
    page: int = 1
    idle_rule: IdleRule = IdleRule.SEPARATE
    # Dates were given that are no period, so another one is shown.
    is_another_period: bool = False

    @property
    def offset(self) -> int:
        return (self.page - 1) * ROWS_PER_PAGE

    @property
    def step(self) -> Step:
        return Step.HOUR if self.end - self.start <= _BY_HOUR_UP_TO else Step.DAY

    @property
    def is_this_month(self) -> bool:
        return self.range_name == "month"

    @property
    def period_text(self) -> str:
        """The period for people. The first year is shown if it differs from the last."""
        first, last = self.start.date(), self.last_day
        year = "" if first.year == last.year else f" {first.year}"
        return f"{first.day} {first:%b}{year} \N{EN DASH} {last.day} {last:%b} {last.year}"

    @property
    def range_text(self) -> str:
        return dict(RANGES).get(self.range_name, "")

    @property
    def last_day(self) -> date:
        return (self.end - timedelta(microseconds=1)).date()


class CostForm(forms.Form):
    """Invalid values are left out, so that a mistyped URL still shows a page."""

    range = forms.ChoiceField(required=False, choices=RANGES)
    group = forms.ChoiceField(required=False, choices=GROUPS)
    idle = forms.ChoiceField(required=False, choices=IDLE_RULES)
    start = day_field()
    end = day_field()
    page = forms.IntegerField(required=False, min_value=1, max_value=_LAST_PAGE)

    def __init__(self, params: Mapping[str, str]) -> None:
        super().__init__(params)
        self.is_valid()


def read(params: Mapping[str, str], *, now: datetime, team_slugs: Sequence[str]) -> CostQuery:
    """Read a query of costs. `of` selects one of the visible teams; any other value means all of them."""
    data = CostForm(params).cleaned_data
    custom = _custom_dates(data.get("start"), data.get("end"))
    name = "" if custom else data.get("range") or "month"
    start, end = custom or _named(name, now)
    team = params.get("team", "")
    return CostQuery(
        range_name=name,
        start=start,
        end=end,
        group_by=GroupBy(data.get("group") or GroupBy.TEAM),
        team_slug=team if team in team_slugs else "",
        page=data.get("page") or 1,
        idle_rule=IdleRule(data.get("idle") or IdleRule.SEPARATE),
        is_another_period=custom is None and bool(params.get("start") or params.get("end")),
    )


def _named(name: str, now: datetime) -> tuple[datetime, datetime]:
    at = now.astimezone(UTC)
    next_hour = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
    month = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    if name == "last-month":
        return (month - _DAY).replace(day=1), month
    if name == "24h":
        return next_hour - _DAY, next_hour
    if name in {"7d", "30d"}:
        midnight = at.replace(hour=0, minute=0, second=0, microsecond=0)
        return midnight - _DAY * (int(name[:-1]) - 1), next_hour
    return month, next_hour


def _custom_dates(first: date | None, last: date | None) -> tuple[datetime, datetime] | None:
    if first is None or last is None or not timedelta(0) <= last - first < _LONGEST:
        return None
    start, end = (datetime.combine(day, time(), tzinfo=UTC) for day in (first, last + _DAY))
    return start, end
