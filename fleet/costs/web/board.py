"""The Costs page's tiles, chart and rows."""

from __future__ import annotations

import calendar
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from urllib.parse import quote, urlencode

from fleet.costs.domain.anomalies import Anomaly
from fleet.costs.domain.change_lines import ChangeText
from fleet.costs.domain.change_marks import ChangeMark
from fleet.costs.domain.forecast import month_end_amount
from fleet.costs.domain.ledger_addresses import build_address
from fleet.costs.domain.results import (
    CostPoint,
    CostRow,
    CostTable,
    GroupBy,
    GroupKey,
    IdleRule,
    Step,
)
from fleet.costs.domain.unit_prices import UnitPrice, price_inferences
from fleet.costs.selectors.anomalies import UnusualDay
from fleet.costs.web.query import IDLE_RULES, CostQuery
from fleet.gpus.domain.money import CENT
from fleet.telemetry.selectors.current import AllocatedGpus
from portal.ui.charts import IDLE, Bar, Chart, stacked_bars
from portal.ui.vega.marks import Mark

# Groups with a colour of their own in the chart.
NAMED = 6
_MOST_UNUSUAL = 5


@dataclass(frozen=True, slots=True)
class Row:
    cost: CostRow
    ledger_url: str
    # The page of what the row is of; empty for idle and what is not attributed.
    name_url: str = ""

    @property
    def utilisation_percent(self) -> float | None:
        return None if self.cost.utilisation is None else self.cost.utilisation * 100


@dataclass(frozen=True, slots=True)
class UnusualRow:
    name: str
    url: str
    anomaly: Anomaly


@dataclass(frozen=True, slots=True)
class CostBoard:
    table: CostTable
    rows: Sequence[Row]
    idle: Row | None
    chart: Chart | None
    ledger_url: str
    is_this_month: bool
    # None for other periods, and when the price of an allocated GPU is not known.
    forecast_amount: Decimal | None
    # None: only a part of the costs has a budget.
    budget_amount: Decimal | None
    # Elapsed part of the month in percent.
    elapsed_percent: Decimal | None
    # Of the groups whose inferences were counted and all of whose hours have a price.
    inference_price: UnitPrice | None
    # Why the costs changed from the period before.
    why: ChangeText
    # Whether idle is among what the person may see: its rule is chosen then.
    sees_idle: bool = False
    unusual: Sequence[UnusualRow] = ()

    @property
    def idle_rule_text(self) -> str:
        return dict(IDLE_RULES)[self.table.idle_rule].lower()

    @property
    def other_columns(self) -> int:
        """The number of table columns beside the group and its cost with and without idle."""
        return 6 + 2 * self.has_tokens + self.has_energy

    @property
    def has_energy(self) -> bool:
        """Whether any of it was measured in the period."""
        return any(row.energy_mj is not None for row in self.table.rows)

    @property
    def has_tokens(self) -> bool:
        """Whether a language model counted tokens in the period."""
        return any(row.tokens for row in self.table.rows)

    @property
    def first_row(self) -> int:
        return self.table.offset + 1

    @property
    def last_row(self) -> int:
        return self.table.offset + len(self.rows)

    @property
    def has_more(self) -> bool:
        return self.last_row < self.table.row_count

    @property
    def change_ratio(self) -> float | None:
        before = self.table.previous_total_amount
        return float(self.table.total_amount / before) - 1 if before else None

    @property
    def idle_ratio(self) -> float | None:
        if self.idle is None or not self.table.total_amount:
            return None
        return float(self.idle.cost.amount / self.table.total_amount)

    @property
    def budget_ratio(self) -> Decimal | None:
        return self.table.total_amount / self.budget_amount if self.budget_amount else None

    @property
    def budget_percent(self) -> Decimal | None:
        return None if self.budget_ratio is None else self.budget_ratio * 100

    @property
    def over_amount(self) -> Decimal | None:
        """The forecast amount above the budget; None within the budget."""
        if self.forecast_amount is None or not self.budget_amount:
            return None
        over = self.forecast_amount - self.budget_amount
        return over if over > 0 else None


def build(
    *,
    query: CostQuery,
    table: CostTable,
    points: Sequence[CostPoint],
    changes: Sequence[ChangeMark] = (),
    without_page: Collection[GroupKey] = (),
    budget_amount: Decimal | None,
    allocated: AllocatedGpus,
    why: ChangeText,
    now: datetime,
    sees_idle: bool = False,
    unusual: Sequence[UnusualDay] = (),
) -> CostBoard:
    elapsed = _elapsed(now) if query.is_this_month else None
    return CostBoard(
        table=table,
        rows=[
            Row(
                row,
                ledger_url(query, row),
                "" if row.key in without_page else name_url(query, row.key),
            )
            for row in table.rows
        ],
        idle=Row(table.idle, ledger_url(query, table.idle)) if table.idle else None,
        # Bars of zero would look as if it were free.
        chart=_chart(points, table, query.step, changes)
        if points and not table.is_unpriced
        else None,
        ledger_url=ledger_url(query),
        is_this_month=query.is_this_month,
        forecast_amount=_forecast(table, allocated, now) if query.is_this_month else None,
        budget_amount=budget_amount,
        elapsed_percent=None if elapsed is None else elapsed * 100,
        inference_price=_inference_price(table),
        why=why,
        sees_idle=sees_idle,
        unusual=unusual_rows(query, unusual),
    )


def unusual_rows(query: CostQuery, days: Sequence[UnusualDay]) -> list[UnusualRow]:
    """Return the newest unusual days in the period: of teams in the table of teams, otherwise of deployments."""
    is_of_teams = query.group_by is GroupBy.TEAM
    rows = []
    for one in days:
        key = GroupKey(one.team_slug, deployment=one.deployment)
        is_in = query.start.date() <= one.anomaly.day <= query.last_day
        if is_in and is_of_teams is not bool(one.deployment):
            rows.append(UnusualRow(key.label, name_url(query, key), one.anomaly))
    return rows[:_MOST_UNUSUAL]


def ledger_url(query: CostQuery, row: CostRow | None = None) -> str:
    """Return the URL of the ledger rows behind a number."""
    return build_address(
        query.start, query.end, team_slug=query.team_slug, key=row.key if row else None
    )


def name_url(query: CostQuery, key: GroupKey) -> str:
    """Return the URL of a group's page: other apps' pages for models and deployments, the costs by deployment for a
    team. Empty if it has none.
    """
    if key.cluster_name:
        return f"/fleet?{urlencode({'cluster': key.cluster_name})}"
    if not key.team_slug:
        return ""
    if key.deployment:
        # Batch jobs stand in the ledger as batch/NAME, pipelines and deployments by their name alone.
        kind, _, name = key.deployment.rpartition("/")
        return f"/{key.team_slug}/{kind or 'deployments'}/{quote(name)}"
    if key.model:
        name = key.model.removeprefix(f"{key.team_slug}/")
        # Several models of one process stand together: "a + b".
        is_one = "/" not in name and " + " not in name
        return f"/{key.team_slug}/models/{quote(name)}" if is_one else ""
    names = {"team": key.team_slug, "group": GroupBy.DEPLOYMENT}
    if query.range_name:
        names["range"] = query.range_name
    else:
        names |= {"start": f"{query.start:%Y-%m-%d}", "end": f"{query.last_day:%Y-%m-%d}"}
    return f"/costs?{urlencode(names)}"


def _forecast(table: CostTable, allocated: AllocatedGpus, now: datetime) -> Decimal | None:
    return month_end_amount(
        spent_amount=table.total_amount.quantize(CENT),
        usd_per_hour_amount=allocated.usd_per_hour_amount,
        at=now,
        ending=allocated.ending,
    )


def _elapsed(now: datetime) -> Decimal:
    days = calendar.monthrange(now.year, now.month)[1]
    month_start = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    seconds = Decimal(int((now - month_start).total_seconds()) or 1)
    return seconds / (days * 86_400)


def _inference_price(table: CostTable) -> UnitPrice | None:
    counted = [row for row in table.rows if row.inferences and not row.has_unpriced_hours]
    amount = sum((row.amount for row in counted), Decimal(0))
    return price_inferences(amount, sum(row.inferences or 0 for row in counted))


def _chart(
    points: Sequence[CostPoint], table: CostTable, step: Step, changes: Sequence[ChangeMark]
) -> Chart:
    """The most expensive groups have their own colours, the others share one, idle is grey."""
    sums: dict[tuple[datetime, str], Decimal] = defaultdict(Decimal)
    is_hidden = table.idle_rule is IdleRule.HIDDEN
    shown = [point for point in points if not (is_hidden and point.key.is_idle)]
    for point in shown:
        sums[point.at, IDLE if point.key.is_idle else point.key.label] += point.amount
    rank = {row.key.label: i for i, row in enumerate(table.rows)}
    cells = sorted(sums.items(), key=lambda cell: rank.get(cell[0][1], len(rank)))
    bars = [Bar(at, series, amount) for (at, series), amount in cells]
    marks = [Mark(change.bar_at(step), change.text) for change in changes]
    if step is Step.HOUR:
        return stacked_bars(
            label="Cost per hour",
            bars=bars,
            unit="$",
            time_unit="yearmonthdatehours",
            time_format="%H:%M",
            marks=marks,
        )
    return stacked_bars(label="Cost per day", bars=bars, unit="$", marks=marks)
