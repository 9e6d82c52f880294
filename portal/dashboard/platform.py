"""The home of platform admins: what fails, who waits, money, clusters, and the portal's own parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

from deployments.alerts.selectors import alerts
from deployments.pages.selectors import home
from deployments.registry.selectors import quarantined_in_use
from fleet.budgets.domain.thresholds import MonthSoFar
from fleet.budgets.selectors import months
from fleet.capacity.domain.overview import FleetOverview, PendingPod
from fleet.capacity.selectors import overview
from fleet.clusters.selectors import clusters
from portal.accounts.models import Team, User
from portal.dashboard import home_needs, platform_parts

_MOST_TEAMS: Final = 8
_MOST_WAITING: Final = 8
_MOST_ALERTS: Final = 8


@dataclass(frozen=True, slots=True)
class TeamMoney:
    """A team's month beside its budget. The percentage is None without a budget; `is_over` is a forecast above it."""

    team: Team
    month: MonthSoFar
    percent: Decimal | None
    is_over: bool


def build_context(user: User, teams: Sequence[Team], now: datetime) -> dict[str, Any]:
    """Return what the page shows, all of one moment."""
    fleet = overview.fleet_overview(actor=user)
    failing = home.failing(actor=user, team_slug=None, now=now)
    opened = alerts.list_open_of_all(user, limit=_MOST_ALERTS)
    infos = clusters.list_clusters()
    money = list_money(teams)
    return {
        "decisions": home_needs.list_decisions(user),
        "failing": [
            *map(home_needs.describe_failing, failing),
            *map(home_needs.describe_alert, opened),
        ],
        "quarantined": len(quarantined_in_use.list_uses(actor=user)),
        "fleet": fleet,
        "waiting": _longest_waiting(fleet),
        "waiting_count": len(fleet.pending),
        "money": money[:_MOST_TEAMS],
        "spent": sum((row.month.spent_amount for row in money), Decimal(0)),
        "budgeted": sum((row.month.budget_amount for row in money), Decimal(0)),
        "over_count": sum(row.is_over for row in money),
        "clusters": infos,
        "parts": platform_parts.list_parts(infos, now),
    }


def list_money(teams: Sequence[Team]) -> list[TeamMoney]:
    """Return each team's month: those above their budget first, then by the spent part of it, then by spend."""
    by_team = months.list_months(teams)
    rows = [_compare(team, by_team[team.pk]) for team in teams]
    rows.sort(key=lambda row: (not row.is_over, -(row.percent or 0), -row.month.spent_amount))
    return rows


def _compare(team: Team, month: MonthSoFar) -> TeamMoney:
    budget, forecast = month.budget_amount, month.forecast_amount
    percent = 100 * month.spent_amount / budget if budget else None
    is_over = bool(budget) and (
        month.spent_amount > budget or (forecast is not None and forecast > budget)
    )
    return TeamMoney(team, month, percent, is_over)


def _longest_waiting(fleet: FleetOverview) -> list[PendingPod]:
    return sorted(fleet.pending, key=lambda pod: pod.created_at)[:_MOST_WAITING]
