"""The cost of a deployment: its ledger rows and the estimate of the current hour."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from deployments.models import Deployment
from deployments.pages.selectors import cost_marks, deployment_rows
from fleet.costs.domain import change_lines
from fleet.costs.domain.change_lines import ChangeText
from fleet.costs.domain.results import CostPoint, CostRow, CostTable, GroupBy, Step
from fleet.costs.domain.unit_prices import UnitPrice, price_inferences, price_tokens
from fleet.costs.selectors import cost_changes, costs, series
from fleet.gpus.domain.intervals import hour_of
from portal.core import clock
from portal.core.definitions.figures import format_money
from portal.ui import charts
from portal.ui.charts import Bar, Chart
from portal.ui.vega.marks import Mark

_CHARTED = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CostTile:
    """A tile with a cost. `unit_price` is shown instead of an amount."""

    title: str
    amount: Decimal | None
    detail: str
    unit_price: UnitPrice | None = None


def context_of(deployment: Deployment) -> dict[str, Any]:
    now = clock.now()
    month = now.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    team = [deployment.team.slug]
    table = costs.table(
        team_slugs=team,
        start=month,
        end=now,
        group_by=GroupBy.REVISION,
        deployment=deployment.name,
    )
    rows = table.rows
    points = series.series(
        team_slugs=team,
        start=hour_of(now) - _CHARTED,
        end=now,
        group_by=GroupBy.REVISION,
        deployment=deployment.name,
    )
    return {
        "tiles": _tiles(deployment, table, now),
        "cost_rows": rows,
        "unpriced_gpu_hours": sum((row.unpriced_gpu_hours for row in rows), Decimal(0)),
        "why": _why(deployment, month, now),
        "cost_chart": _chart(points, _marks(deployment, now)),
        "start": hour_of(now) - _CHARTED,
        "end": now,
    }


def _why(deployment: Deployment, month: datetime, now: datetime) -> ChangeText:
    """Explain the cost of this month so far against the same time before it."""
    slug = deployment.team.slug
    change = cost_changes.explain(
        team_slugs=[slug], start=month, end=now, deployment=deployment.name
    )
    return change_lines.describe(change, team_slug=slug, is_of_one=True)


def _tiles(deployment: Deployment, table: CostTable, now: datetime) -> list[CostTile]:
    zero, rows = Decimal(0), table.rows
    row = deployment_rows.build_rows([deployment])[0]
    total = sum((cost_row.amount for cost_row in rows), zero)
    return [
        CostTile(
            f"{now:%B}",
            None if table.is_unpriced else total,
            "with the estimate of hours that are not final",
        ),
        CostTile("Current daily rate", row.usd_per_day, describe_gpus(row.gpus)),
        _unit_tile(rows, total),
        CostTile(
            "Estimated",
            None if table.is_unpriced else sum((one.estimated_amount for one in rows), zero),
            "hours that are not final yet",
        ),
    ]


def describe_gpus(count: Decimal) -> str:
    return "1 GPU" if count == 1 else f"{count.normalize():f} GPUs"


def _unit_tile(rows: Sequence[CostRow], total: Decimal) -> CostTile:
    """Return the tile of the unit price: per million tokens where tokens were counted, else per thousand
    inferences. Not known while a price is missing.
    """
    tokens = sum(row.tokens or 0 for row in rows)
    if any(row.has_unpriced_hours for row in rows):
        unit = "1,000,000 tokens" if tokens else "1,000 inferences"
        return CostTile(unit, None, "a price is missing")
    count = sum(row.inferences or 0 for row in rows)
    price = price_tokens(total, tokens) or price_inferences(total, count)
    if price is None:
        return CostTile("1,000 inferences", None, "no inferences counted this month")
    bought = f"{format_money(total)} for " if price.is_of_too_few else ""
    title = f"{price.unit:,} {price.noun}s"
    return CostTile(title, None, f"{bought}{price.counted} this month", unit_price=price)


def _marks(deployment: Deployment, now: datetime) -> list[Mark]:
    names = [(deployment.team.slug, deployment.name)]
    changes = cost_marks.list_marks(names, now - _CHARTED, now)
    return [Mark(change.bar_at(Step.DAY), change.text) for change in changes]


def _chart(points: Sequence[CostPoint], changes: Sequence[Mark]) -> Chart | None:
    days: dict[tuple[datetime, str], Decimal] = defaultdict(Decimal)
    for point in points:
        days[(point.at, _label(point))] += point.amount
    if not any(days.values()):
        return None
    bars = [Bar(at, label, amount) for (at, label), amount in sorted(days.items())]
    return charts.stacked_bars(label="Daily cost by revision", bars=bars, unit="$", marks=changes)


def _label(point: CostPoint) -> str:
    revision = point.key.revision
    return f"r{revision}" if revision.isdecimal() else revision or point.key.label
