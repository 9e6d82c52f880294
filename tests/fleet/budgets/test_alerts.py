"""Teams are told once when their month crosses 50, 80 and 100% of its budget, or will exceed it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
import time_machine
from django.db import connection
from django.test.utils import CaptureQueriesContext

from fleet import tasks
from fleet.budgets.domain.thresholds import MonthSoFar, Threshold, describe, list_crossed
from fleet.budgets.selectors import months
from fleet.budgets.services import alerts
from fleet.models import BudgetAlert, Cluster, GpuLease, LedgerRow, Node, UnpricedHour
from portal.accounts.models import Team
from portal.notifications.models import Notice
from tests.accounts import make_team
from tests.fleet.one_node import NOW, node, still_clock, vision

__all__ = ["node", "still_clock", "vision"]


def month(spent: str, forecast: str | None = None, budget: str = "1000") -> MonthSoFar:
    amount = None if forecast is None else Decimal(forecast)
    return MonthSoFar(Decimal(spent), amount, Decimal(budget))


def hold(node: Node, *, share_ppm: int, since: datetime) -> None:
    """A pod of vision on the node."""
    GpuLease.objects.create(
        cluster=node.cluster,
        node=node,
        pod_uid="p",
        pod_name="p",
        namespace="vision",
        team_slug="vision",
        share_ppm=share_ppm,
        started_at=since,
        changed_at=NOW,
    )


@pytest.mark.parametrize(
    ("so_far", "expected"),
    [
        (month("499.99", "1000"), []),
        (month("500", "1000"), ["50%"]),
        (month("799.99"), ["50%"]),
        (month("800"), ["50%", "80%"]),
        (month("1000", "1000"), ["50%", "80%", "100%"]),
        (month("0", "1000.01"), ["forecast"]),
        (month("1200", "1500"), ["forecast", "50%", "80%", "100%"]),
        # No budget is no limit.
        (month("9000", "9000", budget="0"), []),
    ],
)
def test_thresholds_are_crossed_at_their_part(so_far: MonthSoFar, expected: list[str]) -> None:
    assert list_crossed(so_far) == [Threshold(name) for name in expected]


def test_message_says_what_is_not_known() -> None:
    assert describe(Threshold.HALF, month("500")) == (
        "$500 of $1,000 is spent this month; a price is missing, so the month's total is not known."
    )
    assert describe(Threshold.FORECAST, month("10", "1200")) == (
        "At the current rate the month will cost $1,200; $10 of $1,000 is spent this month."
    )


def test_message_says_that_hours_without_a_price_are_left_out() -> None:
    some = replace(month("500", "900"), has_unpriced_hours=True)

    assert describe(Threshold.HALF, some) == (
        "$500 of $1,000 is spent this month, without hours that have no price yet; at the current "
        "rate the month will cost $900."
    )


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_hours_without_a_price_are_those_of_the_teams_on_their_nodes(
    node: Node, vision: Team
) -> None:
    other = make_team("other")
    hold(node, share_ppm=1_000_000, since=NOW - timedelta(hours=3))
    UnpricedHour.objects.create(node=node, hour=NOW.replace(minute=0) - timedelta(hours=2))

    found = months.list_months([vision, other])

    assert found[vision.pk].has_unpriced_hours
    assert not found[other.pk].has_unpriced_hours


def charge(team: Team, amount: str, *, at: datetime = NOW, name: str = "w") -> None:
    LedgerRow.objects.create(
        hour=at.replace(minute=0),
        cluster_name="local",
        node_uid=f"{team.slug}-{name}-{at}",
        node_name="n",
        instance_type="g5.xlarge",
        kind="allocated",
        team_slug=team.slug,
        namespace=team.slug,
        workload_name=name,
        gpu_milliseconds=1,
        cost_amount=Decimal(amount),
        sealed_at=at,
    )


def sent() -> list[str]:
    return list(Notice.objects.order_by("pk").values_list("subject", flat=True))


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_each_threshold_notifies_once_and_of_several_the_most_urgent(vision: Team) -> None:
    charge(vision, "499.99")
    tasks.sweep_budgets()
    assert sent() == []

    charge(vision, "0.01", name="x")
    tasks.sweep_budgets()
    tasks.sweep_budgets()
    assert sent() == ["Budget of vision: 50% spent"]

    charge(vision, "600", name="y")
    tasks.sweep_budgets()
    tasks.sweep_budgets()
    assert sent() == ["Budget of vision: 50% spent", "Budget of vision: 100% spent"]
    stored = BudgetAlert.objects.order_by("pk").values_list("threshold", "spent_amount")
    assert list(stored) == [
        ("50%", Decimal("500.00")),
        # More is spent than the budget, and that will not become less.
        ("forecast", Decimal("1100.00")),
        ("80%", Decimal("1100.00")),
        ("100%", Decimal("1100.00")),
    ]


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_larger_budget_and_next_month_begin_anew(vision: Team) -> None:
    charge(vision, "1000")
    alerts.sweep()
    Team.objects.update(monthly_budget_amount=Decimal(2000))
    alerts.sweep()
    assert sent() == ["Budget of vision: 100% spent", "Budget of vision: 50% spent"]

    with time_machine.travel(datetime(2026, 12, 1, 0, 5, tzinfo=UTC), tick=False):
        assert alerts.sweep() == 0
        assert months.read_crossed_this_month() == {}
    assert [(row.threshold, row.budget_amount) for row in BudgetAlert.objects.order_by("id")] == [
        ("50%", Decimal(1000)),
        ("80%", Decimal(1000)),
        ("100%", Decimal(1000)),
        ("50%", Decimal(2000)),
    ]


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_current_rate_notifies_before_the_money_is_spent(vision: Team, node: Node) -> None:
    hold(node, share_ppm=4_000_000, since=NOW - timedelta(minutes=20))

    alerts.sweep()

    # 227.5 hours at $5.672 are left of November.
    notice = Notice.objects.get()
    assert notice.subject == "Budget of vision: forecast above it"
    assert notice.message.startswith("At the current rate the month will cost $1,29")
    assert notice.path == "/costs"


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_crash_between_alert_and_notice_leaves_neither(
    vision: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    charge(vision, "600")

    def die(**_: object) -> None:
        raise SystemExit

    with monkeypatch.context() as crash:
        crash.setattr("portal.notifications.services.notify", die)
        with pytest.raises(SystemExit):
            alerts.sweep()
    assert not BudgetAlert.objects.exists()

    assert alerts.sweep() == 1
    assert sent() == ["Budget of vision: 50% spent"]


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock")
def test_many_teams_take_no_more_queries_than_few(vision: Team) -> None:
    Cluster.objects.create(name="c", kind="local", gateway_url="http://127.0.0.1:1", created_at=NOW)

    def queries() -> int:
        with CaptureQueriesContext(
            connection,
        ) as captured:
            alerts.sweep()
        return len(captured)

    few = queries()
    for number in range(20):
        team = make_team(slug=f"team-{number}")
        Team.objects.filter(pk=team.pk).update(monthly_budget_amount=Decimal(100))
    assert queries() == few
