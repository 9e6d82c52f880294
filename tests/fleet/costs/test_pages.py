"""The Costs page and the ledger: what a team sees of what GPUs cost."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.models import (
    InstancePrice,
    LedgerRow,
    Node,
    SealedHour,
    UnpricedHour,
    Workload,
    WorkloadHour,
)
from portal.accounts.models import Team
from portal.core.definitions.figures import format_money
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
HOUR = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)


def ledger(kind: str, amount: str, **names: Any) -> LedgerRow:
    values = {
        "hour": HOUR,
        "cluster_name": "local",
        "node_uid": "n1",
        "node_name": "local-1",
        "instance_type": "g5.12xlarge",
        "gpu_milliseconds": 3_600_000,
        "usd_per_hour_amount": Decimal("5.672"),
        "price_source": "list",
        "sealed_at": NOW,
    }
    return LedgerRow.objects.create(kind=kind, cost_amount=Decimal(amount), **(values | names))


@pytest.fixture
def ledger_rows(node: Node) -> None:
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    labels = {"deployment": "detector", "model": "detector", "revision": "1"}
    ledger(
        "allocated",
        "1.418",
        team_slug="vision",
        namespace="vision",
        workload_name="detector-r1",
        workload_labels=labels,
    )
    ledger("allocated", "2.836", team_slug="nlp", namespace="nlp", workload_name="asr-r1")
    ledger("idle", "1.418")


def test_costs_of_a_team_leave_out_others_and_idle(
    member: Client, nlp: Team, ledger_rows: None
) -> None:
    costs = page(member.get("/costs?group=deployment"))

    assert "vision/detector" in costs.text
    assert "asr" not in costs.text
    assert "nlp" not in costs.text.split()
    assert costs.term("Idle") == "Visible to platform admins"


def test_the_idle_of_one_team_is_not_kept_from_an_admin(
    admin: Client, vision: Team, ledger_rows: None
) -> None:
    costs = page(admin.get("/costs?team=vision"))

    assert costs.term("Idle") == "Choose all teams to see it"


def test_admin_sees_every_team_and_idle_and_the_sum(
    admin: Client, vision: Team, nlp: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    rows = list(
        csv.DictReader(admin.get("/costs.csv?range=month").getvalue().decode().splitlines())
    )

    assert [(row["group"], row["total_usd"]) for row in rows] == [
        ("nlp", "2.836000"),
        ("vision", "1.418000"),
        ("idle", "1.418000"),
    ]
    assert sum(Decimal(row["total_usd"]) for row in rows) == Decimal("5.672")


def test_every_amount_leads_to_its_ledger_rows(
    admin: Client, vision: Team, nlp: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    costs = page(admin.get("/costs?group=deployment"))
    (address,) = {to for to in costs.links.values() if "deployment=detector" in to}

    (row,) = page(admin.get(address)).rows

    assert row["Cost"] == "$1.42"
    assert row["Workload"].startswith("detector-r1")


@pytest.mark.parametrize(
    ("group", "names"),
    [
        (
            "team",
            {
                "nlp": "/costs?team=nlp&group=deployment&range=7d",
                "vision": "/costs?team=vision&group=deployment&range=7d",
            },
        ),
        ("model", {"vision/detector": "/vision/models/detector"}),
        ("deployment", {"vision/detector": "/vision/deployments/detector"}),
        ("revision", {"vision/detector 1": "/vision/deployments/detector"}),
        ("cluster", {"local": "/fleet?cluster=local"}),
    ],
)
def test_names_lead_to_what_they_name(
    admin: Client,
    vision: Team,
    nlp: Team,
    ledger_rows: None,
    group: str,
    names: dict[str, str],
) -> None:
    Node.objects.all().delete()

    links = page(admin.get(f"/costs?group={group}&range=7d")).links

    assert {name: links.get(name) for name in names} == names
    assert "idle" not in links
    if group in ("team", "cluster"):
        assert {admin.get(address).status_code for address in names.values()} == {200}


def test_reserved_dollars_stand_beside_those_in_use(
    admin: Client, vision: Team, nlp: Team, ledger_rows: None
) -> None:
    cluster = Node.objects.get().cluster
    Node.objects.all().delete()
    workload = Workload.objects.create(
        cluster=cluster,
        team=vision,
        namespace="vision",
        name="detector-r1",
        labels={"deployment": "detector"},
        created_at=HOUR,
    )
    WorkloadHour.objects.create(
        workload=workload,
        start=HOUR,
        observed_ms=3_600_000,
        gpu_busy_ms=900_000,
        gpu_busy_source="triton",
    )

    shown = page(admin.get("/costs")).rows
    rows = csv.DictReader(admin.get("/costs.csv?range=month").getvalue().decode().splitlines())
    rest = admin.get("/api/v1/costs").json()

    assert {row["group"]: row["used_usd"] for row in rows} == {
        "nlp": "",
        "vision": "0.354500",
        "idle": "",
    }
    used = {row["key"]["name"]: row["used_amount"] for row in rest["rows"]}
    assert used == {"nlp": None, "vision": "0.354500"}
    cells = [row["Utilisation"] for row in shown if "$0.35 used" in row.get("Utilisation", "")]
    assert len(cells) == 1


def test_ledger_of_other_teams_stays_hidden(member: Client, nlp: Team, ledger_rows: None) -> None:
    html = member.get("/costs/ledger?holder=nlp").content.decode()

    assert "asr-r1" not in html
    assert "No ledger row" in html


def test_the_running_hour_is_marked_as_an_estimate(admin: Client, node: Node, vision: Team) -> None:
    occupy(node, vision, "detector", 1_000_000, None)

    costs = admin.get("/costs").content.decode()
    rows = page(admin.get("/costs/ledger")).rows

    assert "estimated for unsealed hours" in costs
    assert any(row["Workload"].endswith("estimated") for row in rows)


def test_the_forecast_of_the_whole_fleet_counts_idle_gpus_to_the_end_of_the_month(
    admin: Client, node: Node, vision: Team, ledger_rows: None
) -> None:
    forecast = page(admin.get("/costs")).term("Month forecast").split()[0]

    spent_and_estimated = Decimal("5.672") + Decimal("5.672") / 6
    left_hours = Decimal("227.5")
    assert Decimal(forecast.strip("$").replace(",", "")) == round(
        spent_and_estimated + left_hours * Decimal("5.672")
    )


def test_the_forecast_is_not_known_when_a_price_is_not(
    admin: Client, node: Node, ledger_rows: None
) -> None:
    InstancePrice.objects.all().delete()

    assert page(admin.get("/costs")).term("Month forecast").startswith("not known")


def test_an_address_that_means_nothing_shows_this_month(admin: Client, ledger_rows: None) -> None:
    answer = admin.get("/costs?range=banana&group=moon&start=x&end=2026-13-40&team=nobody")

    assert answer.status_code == 200
    assert "1 Nov" in answer.content.decode()


def test_a_period_that_ends_with_the_calendar_shows_this_month(
    admin: Client, ledger_rows: None
) -> None:
    answer = admin.get("/costs?start=9999-12-31&end=9999-12-31")

    assert answer.status_code == 200
    assert "1 Nov" in answer.content.decode()


def test_range_and_group_stay_in_the_address_when_the_other_changes(
    admin: Client, ledger_rows: None
) -> None:
    links = page(admin.get("/costs?range=7d&group=model")).links.values()

    assert {"/costs?range=7d&group=revision", "/costs?range=30d&group=model"} <= set(links)


def test_row_without_a_price_is_shown_as_unpriced(admin: Client, node: Node) -> None:
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    UnpricedHour.objects.create(node=node, hour=HOUR)
    ledger("idle", "0", usd_per_hour_amount=None, price_source="", capacity_type="spot")

    InstancePrice.objects.all().delete()
    shown = page(admin.get("/costs/ledger"))
    costs = page(admin.get("/costs"))
    answer = admin.get("/costs/ledger.csv?from=2026-11-21T00:00Z&to=2026-11-22T00:00Z")
    row = next(csv.DictReader(answer.getvalue().decode().splitlines()))

    assert "unpriced" in {row["Cost"] for row in shown.rows}
    assert "local · g5.12xlarge · spot" in shown.text
    assert "$None" not in shown.text
    assert "1 node without a price." in costs.text
    assert "idle: ledger rows for unknown cost" in costs.links
    assert costs.term("Spent").startswith("not known")
    assert "$0" not in {cell for row in costs.rows for cell in row.values()}
    assert "local-1 (g5.12xlarge, on-demand, us-east-1," in costs.text
    columns = ("capacity_type", "usd_per_hour", "price_source", "is_priced")
    assert [row[name] for name in columns] == ["spot", "", "", "False"]


def test_ledger_csv_has_every_row_of_the_period(
    admin: Client, vision: Team, ledger_rows: None
) -> None:
    Node.objects.all().delete()
    answer = admin.get("/costs/ledger.csv?from=2026-11-21T00:00Z&to=2026-11-22T00:00Z")
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))

    assert answer["Content-Type"] == "text/csv; charset=utf-8"
    assert [row["kind"] for row in rows] == ["allocated", "allocated", "idle"]
    assert sum(Decimal(row["cost_usd"]) for row in rows) == Decimal("5.672")


@pytest.mark.parametrize(
    ("filtered", "amounts"),
    [
        ("holder=vision&deployment=detector&kind=held", ["1.418000"]),
        ("holder=nlp", ["2.836000"]),
        ("kind=idle", ["1.418000"]),
        ("cluster=another", []),
    ],
)
def test_ledger_csv_has_the_rows_that_its_page_shows(
    admin: Client, vision: Team, ledger_rows: None, filtered: str, amounts: list[str]
) -> None:
    Node.objects.all().delete()
    query = f"?from=2026-11-21T00:00Z&to=2026-11-22T00:00Z&{filtered}"

    shown = page(admin.get(f"/costs/ledger{query}"))
    answer = admin.get(shown.links["Export CSV"])

    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [row["cost_usd"] for row in rows] == amounts
    assert [row["Cost"] for row in shown.rows] == [
        format_money(Decimal(amount)) for amount in amounts
    ]


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("0001-01-01T00:00%2B14:00", "9999-12-31T23:59-14:00"),
        ("0001-01-01T00:00Z", "9999-12-31T23:59Z"),
        ("soon", "later"),
    ],
)
def test_times_at_the_ends_of_the_calendar_are_left_out(
    admin: Client, vision: Team, start: str, end: str
) -> None:
    answer = admin.get(f"/costs/ledger?from={start}&to={end}")

    assert answer.status_code == 200
    assert "1 Nov 2026 00:00" in page(answer).text


@pytest.mark.parametrize(
    "dates",
    [
        "start=2026-11-20&end=2026-11-01",
        "start=2025-01-01&end=2026-11-20",
        "start=2026-11-20",
        "start=yesterday&end=2026-11-20",
        "start=0001-01-01&end=0001-01-01",
    ],
)
@pytest.mark.parametrize("path", ["/costs", "/costs/callers"])
def test_dates_that_cannot_be_shown_are_said(
    admin: Client, vision: Team, path: str, dates: str
) -> None:
    shown = page(admin.get(f"{path}?{dates}&range=7d"))

    assert (
        "Enter a first and a last day, at most 400 days in all. Shown instead: 7 days."
        in shown.text
    )


def test_a_period_that_began_last_year_says_so(admin: Client, vision: Team) -> None:
    shown = page(admin.get("/costs?start=2025-12-20&end=2026-01-10"))

    assert "20 Dec 2025 \N{EN DASH} 10 Jan 2026, UTC" in shown.text
    assert "Shown instead" not in shown.text
