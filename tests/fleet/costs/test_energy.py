"""kWh on the Costs page, in REST and in the CSV: of what was measured, and never 0 where it is not known."""

from __future__ import annotations

import csv
from decimal import Decimal

import pytest
from django.test import Client

from fleet.models import WorkloadHour
from fleet.telemetry.services import days
from portal.accounts.models import Team
from tests.fleet.costs.test_pages import HOUR, ledger_rows
from tests.fleet.one_node import admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "ledger_rows", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock", "ledger_rows")]
SPAN = "start=2026-11-21T09:00Z&end=2026-11-21T10:00Z"
KWH = 3_600_000_000


@pytest.fixture
def measured(node: object, vision: Team) -> WorkloadHour:
    """Half an hour of its GPU-hour took 0.25 kWh."""
    workload = occupy(node, vision, "detector", 1_000_000, None)  # type: ignore[arg-type]
    return WorkloadHour.objects.create(
        workload=workload, start=HOUR, energy_mj=KWH // 4, energy_ms=1_800_000
    )


def rows(client: Client, group: str) -> dict[str, tuple[str | None, str]]:
    answer = client.get(f"/api/v1/costs?group_by={group}&{SPAN}").json()
    return {
        row["key"]["name"]: (row["energy_kwh"], row["energy_gpu_hours"]) for row in answer["rows"]
    }


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("group", "name"), [("team", "vision"), ("deployment", "vision/detector")])
def test_rest_has_kwh_by_group_and_null_where_it_is_not_known(
    admin: Client, nlp: Team, group: str, name: str
) -> None:
    of = rows(admin, group)

    assert of.pop(name) == ("0.250000", "0.500000")
    assert set(of.values()) == {(None, "0.000000")}


@pytest.mark.usefixtures("measured")
def test_days_that_were_summed_up_have_the_same(member: Client) -> None:
    before = rows(member, "team")

    days.sum_up_running()

    assert rows(member, "team") == before == {"vision": ("0.250000", "0.500000")}


@pytest.mark.usefixtures("measured")
def test_the_page_says_of_how_much_of_the_gpu_time_it_is(admin: Client) -> None:
    # Its GPU time of the day, the running estimate included.
    shown = page(admin.get("/costs?group=team&start=2026-11-21&end=2026-11-21"))

    assert shown.row("vision")["Energy"] == "0.25 kWh 46% measured"
    assert shown.row("nlp")["Energy"] == "not known"


def test_without_a_measurement_there_is_no_column(admin: Client) -> None:
    shown = page(admin.get("/costs?group=team&start=2026-11-21&end=2026-11-21"))

    assert not any("Energy" in row for row in shown.rows)


@pytest.mark.usefixtures("measured")
def test_exports_have_it_too(member: Client) -> None:
    answer = member.get(f"/api/v1/costs.csv?group_by=team&{SPAN}")
    text = b"".join(answer.streaming_content).decode()  # type: ignore[attr-defined]

    [row] = csv.DictReader(text.splitlines())
    assert Decimal(row["energy_kwh"]) == Decimal("0.25")
