"""The current month of teams against their budgets. Months are UTC."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal

from fleet.budgets.domain.thresholds import CrossedThreshold, MonthSoFar, Threshold
from fleet.costs.domain.forecast import month_end_amount
from fleet.costs.domain.results import GroupBy
from fleet.costs.selectors import open_hours, sealed, unpriced
from fleet.costs.selectors.sealed import Scope
from fleet.gpus.domain.money import CENT
from fleet.models import BudgetAlert
from fleet.telemetry.selectors import current
from portal.accounts.models import Team
from portal.core import clock


def first_day(at: datetime) -> date:
    return at.date().replace(day=1)


def list_months(teams: Collection[Team]) -> dict[int, MonthSoFar]:
    """Return each team's month so far by team id, in a constant number of queries."""
    at = clock.now()
    start = at.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    slugs = [team.slug for team in teams]
    spent = _spent_by_team(slugs, start, at)
    rates = current.count_gpus_by_team(team_slugs=slugs)
    waiting = unpriced.teams_with_hours(start=start, end=at)
    return {
        team.pk: replace(
            _month(team, spent.get(team.slug, Decimal(0)), rates.get(team.slug), at),
            has_unpriced_hours=team.slug in waiting,
        )
        for team in teams
    }


def read_crossed_this_month() -> dict[tuple[int, Decimal], set[str]]:
    """Return the thresholds that were notified this month, by team and the budget that they are of."""
    rows = BudgetAlert.objects.filter(month=first_day(clock.now())).order_by()
    crossed: dict[tuple[int, Decimal], set[str]] = defaultdict(set)
    for team_id, budget_amount, threshold in rows.values_list(
        "team_id", "budget_amount", "threshold"
    ):
        crossed[team_id, budget_amount].add(threshold)
    return dict(crossed)


def list_crossed_since(team: Team, since: datetime) -> list[CrossedThreshold]:
    """Return the thresholds of the team's budget that were notified since then, newest first."""
    rows = BudgetAlert.objects.filter(team=team, at__gte=since)
    return [CrossedThreshold(Threshold(row.threshold), row.month, row.at) for row in rows]


def _spent_by_team(slugs: Collection[str], start: datetime, end: datetime) -> dict[str, Decimal]:
    """Return the spend by team, including the estimate of unsealed hours."""
    scope = Scope(slugs)
    amounts: dict[str, Decimal] = defaultdict(Decimal)
    for one in sealed.sums(scope, start, end, GroupBy.TEAM):
        amounts[one.key.team_slug] += one.amount
    for open_sum in open_hours.estimate(scope, start, end, GroupBy.TEAM).sums:
        amounts[open_sum.key.team_slug] += open_sum.amount
    return dict(amounts)


def _month(
    team: Team, spent: Decimal, allocated: current.AllocatedGpus | None, at: datetime
) -> MonthSoFar:
    now = allocated or current.AllocatedGpus(Decimal(0), Decimal(0))
    return MonthSoFar(
        spent_amount=spent.quantize(CENT),
        forecast_amount=month_end_amount(
            spent_amount=spent,
            usd_per_hour_amount=now.usd_per_hour_amount,
            at=at,
            ending=now.ending,
        ),
        budget_amount=team.monthly_budget_amount,
    )
