"""Costs from a terminal: what becomes of idle, and days that are not as usual."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.cache import cache

from fleet.models import Cluster, SealedHour, Workload, WorkloadHour
from portal.accounts.models import User
from tests.accounts import make_team, make_user
from tests.client.terminal import connect, run, sign_in
from tests.fleet.costs.test_anomalies import DAY, ONE, spend
from tests.fleet.costs.test_pages import ledger_rows
from tests.fleet.one_node import NOW, nlp, node, still_clock, vision

__all__ = ["ledger_rows", "nlp", "node", "sign_in", "still_clock", "vision"]
SignIn = Callable[[User], str]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]


@pytest.fixture
def admin(db: None, sign_in: SignIn) -> User:
    user = make_user("ada", is_platform_admin=True)
    sign_in(user)
    return user


@pytest.mark.usefixtures("admin", "ledger_rows")
@pytest.mark.parametrize(
    ("rule", "rows", "total"),
    [
        ("", [("nlp", "2.84"), ("vision", "1.42"), ("Idle", "1.42")], "5.67"),
        ("hidden", [("nlp", "2.84"), ("vision", "1.42")], "4.25"),
        ("by-cost", [("nlp", "3.78"), ("vision", "1.89")], "5.67"),
        ("by-gpu-time", [("nlp", "3.54"), ("vision", "2.13")], "5.67"),
    ],
)
def test_idle_is_a_row_left_out_or_shared(
    rule: str, rows: list[tuple[str, str]], total: str
) -> None:
    hour = ["--start", "2026-11-21T09:00", "--end", "2026-11-21T10:00"]
    done = run(["cost", "--by", "team", *hour, *(["--idle", rule] if rule else [])])

    assert done.code == 0, done.err
    lines = [tuple(line.split()[:2]) for line in done.out.splitlines()[1:]]
    assert lines == [*rows, ("Total", total)]
    costs = connect().costs.get(group_by="team", idle=rule)
    borne = sum((row.amount + row.idle_amount for row in costs.rows), Decimal(0))
    idle = costs.idle.amount if costs.idle else 0
    assert borne + idle == costs.total_amount
    assert costs.idle_rule == (rule or "separate")


@pytest.mark.usefixtures("admin", "ledger_rows")
@pytest.mark.parametrize(("inferences", "price"), [(0, "-"), (1, "too few"), (1000, "1.4180")])
def test_a_price_per_1000_needs_as_many(inferences: int, price: str) -> None:
    start = datetime(2026, 11, 21, 9, tzinfo=UTC)
    workload = Workload.objects.create(
        cluster=Cluster.objects.get(),
        team=make_team(slug="vision"),
        namespace="vision",
        name="detector-r1",
        created_at=start,
    )
    WorkloadHour.objects.create(
        workload=workload, start=start, inference_count=inferences, observed_ms=1
    )
    hour = ["--start", "2026-11-21T09:00", "--end", "2026-11-21T10:00"]

    done = run(["cost", "--by", "team", *hour])

    line = next(line for line in done.out.splitlines() if line.startswith("vision"))
    assert line.rstrip().endswith(f"  {price}")


def test_unusual_days_are_listed_with_what_is_usual(
    admin: User, node: object, vision: object
) -> None:
    cache.clear()
    cluster = Cluster.objects.get()
    for number in range(30):
        spend(cluster, DAY - number * ONE, "400" if number == 0 else "100")
    SealedHour.objects.create(cluster=cluster, hour=NOW - timedelta(hours=3), sealed_at=NOW)

    listed = run(["unusual-days", "--team", "vision"])

    assert listed.code == 0, listed.err
    assert "2026-11-20" in listed.out
    assert "vision/ocr" in listed.out
    days = {day.deployment: day for day in connect().costs.unusual_days()}
    assert days.keys() == {"", "ocr"}
    assert (days["ocr"].day, days["ocr"].amount, days["ocr"].usual_amount) == (DAY, 400, 100)
    assert run(["unusual-days", "--team", "lost"]).code == 3
    assert run(["unusual-days", "--json"]).json[0]["usual_amount"] == "100.000000"
