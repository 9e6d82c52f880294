"""Notify a team once when its month crosses a threshold of its budget."""

from __future__ import annotations

from collections.abc import Sequence

from django.db import transaction
from django.urls import reverse

from fleet.budgets.domain import thresholds
from fleet.budgets.domain.thresholds import MonthSoFar, Threshold
from fleet.budgets.selectors import months
from fleet.models import BudgetAlert
from portal.accounts.models import Team
from portal.core import clock
from portal.notifications import events
from portal.notifications import services as notifications


def sweep() -> int:
    """Notify the teams that crossed a threshold. Repeated and concurrent runs notify once. Returns the number of
    notified teams.
    """
    teams = list(Team.objects.filter(monthly_budget_amount__gt=0))
    by_team = months.list_months(teams)
    return sum(_notify(team, by_team[team.pk]) for team in teams)


def _notify(team: Team, month: MonthSoFar) -> bool:
    reached = thresholds.list_crossed(month)
    if not reached:
        return False
    with transaction.atomic():
        # Two sweeps of one team wait for each other, so that the second finds what the first wrote.
        Team.objects.select_for_update(no_key=True).get(pk=team.pk)
        new = _add(team, month, reached)
        if not new:
            return False
        # Of several at once the most urgent is enough.
        threshold = new[-1]
        notifications.notify(
            team=team,
            event=events.BUDGET_REACHED.code,
            subject=f"Budget of {team.slug}: {_describe(threshold)}",
            message=thresholds.describe(threshold, month),
            path=reverse("costs"),
            data={"threshold": threshold.value},
        )
    return True


def _add(team: Team, month: MonthSoFar, reached: Sequence[Threshold]) -> list[Threshold]:
    now = clock.now()
    first = months.first_day(now)
    rows = BudgetAlert.objects.filter(team=team, month=first, budget_amount=month.budget_amount)
    sent = set(rows.values_list("threshold", flat=True))
    new = [threshold for threshold in reached if threshold not in sent]
    BudgetAlert.objects.bulk_create(
        BudgetAlert(
            team=team,
            month=first,
            threshold=threshold,
            budget_amount=month.budget_amount,
            spent_amount=month.spent_amount,
            forecast_amount=month.forecast_amount,
            at=now,
        )
        for threshold in new
    )
    return new


def _describe(threshold: Threshold) -> str:
    if threshold == Threshold.FORECAST:
        return "forecast above it"
    return f"{threshold} spent"
