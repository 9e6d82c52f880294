"""Cost pages and lists with more rows than one page has: all of them are found, once, and their sums hold."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from fleet.costs.services import open_hours
from fleet.models import LedgerRow, Node, OpenHourSum, SealedHour
from portal.accounts.models import Team
from portal.core.definitions.figures import format_money
from tests.fleet.one_node import NOW, admin, member, nlp, node, occupy, still_clock, vision
from tests.page import page

__all__ = ["admin", "member", "nlp", "node", "still_clock", "vision"]
pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("still_clock")]
HOUR = datetime(2026, 11, 21, 9, 0, tzinfo=UTC)
COSTS_QUERIES = 31
LEDGER_QUERIES = 16
API_QUERIES = 15


def add_ledger(deployments: int, hours: int = 1, team: str = "vision") -> None:
    """Deployment n costs n + 1 cents an hour."""
    LedgerRow.objects.bulk_create(
        LedgerRow(
            hour=HOUR - timedelta(hours=hour),
            cluster_name="local",
            node_uid=f"n{number}",
            node_name=f"local-{number}",
            instance_type="g5.12xlarge",
            kind="allocated",
            team_slug=team,
            namespace=team,
            workload_name=f"d{number}-r1",
            workload_labels={"deployment": f"d{number}", "model": "m", "revision": "1"},
            gpu_milliseconds=3_600_000,
            cost_amount=Decimal(number + 1) / 100,
            usd_per_hour_amount=Decimal("5.672"),
            price_source="list",
            sealed_at=NOW,
        )
        for hour in range(hours)
        for number in range(deployments)
    )


def follow(client: Client, address: str) -> list[Any]:
    answers = []
    while address:
        answer = client.get(address)
        assert answer.status_code == 200, answer.content
        answers.append(answer.json())
        address = answers[-1]["next"]
    return answers


def test_costs_by_rest_come_in_pages_that_sum_exactly(admin: Client, vision: Team) -> None:
    add_ledger(230)

    answers = follow(admin, "/api/v1/costs?group_by=deployment")
    small = follow(admin, "/api/v1/costs?group_by=deployment&limit=60")

    rows = [row for answer in answers for row in answer["rows"]]
    assert [len(answer["rows"]) for answer in answers] == [100, 100, 30]
    assert [row["key"]["deployment"] for row in rows] == [f"d{n}" for n in reversed(range(230))]
    assert [row for answer in small for row in answer["rows"]] == rows
    assert {answer["row_count"] for answer in answers} == {230}
    for answer in answers:
        shown = sum(Decimal(row["amount"]) for row in answer["rows"])
        assert shown + Decimal(answer["others_amount"]) == Decimal(answer["total_amount"])
        assert Decimal(answer["total_amount"]) == Decimal(230 * 231 // 2) / 100
    assert answers[0]["previous"] is None
    assert admin.get(answers[1]["previous"]).json() == answers[0]


def test_series_and_usage_come_in_pages(admin: Client, vision: Team) -> None:
    add_ledger(300, hours=2)

    answers = follow(admin, "/api/v1/costs/series?group_by=deployment&step=hour")

    points = [point for answer in answers for point in answer["results"]]
    assert [len(answer["results"]) for answer in answers] == [500, 100]
    assert len({(point["at"], point["key"]["name"]) for point in points}) == 600
    assert sum(Decimal(point["amount"]) for point in points) == Decimal(300 * 301) / 100
    (usage,) = follow(admin, "/api/v1/usage")
    assert (usage["next"], usage["previous"], usage["results"]) == (None, None, [])


@pytest.mark.parametrize("cursor", ["x", "bz0tMQ==", "bz05OTk5OTk5OTk5", "cD0x\u00e9"])
def test_a_cursor_of_nobody_is_refused_by_name(admin: Client, cursor: str) -> None:
    for path in ("costs", "costs/series", "usage"):
        answer = admin.get(f"/api/v1/{path}", {"cursor": cursor})

        assert answer.status_code == 400
        assert "The cursor is not valid for this list" in answer.content.decode()


@pytest.mark.parametrize("limit", ["0", "-1", "x", "9" * 30, "1000"])
def test_a_limit_stays_within_that_of_the_list(admin: Client, vision: Team, limit: str) -> None:
    add_ledger(120)

    answer = admin.get("/api/v1/costs", {"group_by": "deployment", "limit": limit}).json()

    assert len(answer["rows"]) == 100


def test_every_ledger_row_is_on_one_page(admin: Client, vision: Team) -> None:
    Node.objects.all().delete()
    add_ledger(60, hours=2)
    add_ledger(3, hours=1, team="nlp")
    address = "/costs/ledger?kind=held&holder=vision&cluster=local"

    shown, totals = [], set()
    while address:
        ledger = page(admin.get(address))
        shown += [tuple(row.values()) for row in ledger.rows]
        totals.add(ledger.term("Total"))
        address = ledger.links.get("Older", "")

    assert len(shown) == len(set(shown)) == 120
    assert totals == {"$37"}


@pytest.mark.parametrize(
    "cursor", ["x", "20261121T0900", "20261121T0900.x", "99999999T9999.1", "."]
)
def test_a_place_in_the_ledger_that_means_nothing_is_the_newest(
    admin: Client, vision: Team, cursor: str
) -> None:
    add_ledger(60)

    shown = page(admin.get("/costs/ledger", {"older_than": cursor}))

    assert len(shown.rows) == 50
    assert "Newest" not in shown.links


def test_sums_of_the_ledger_page_are_those_of_its_rows(
    admin: Client, member: Client, vision: Team, nlp: Team
) -> None:
    Node.objects.all().delete()
    add_ledger(30, hours=30)
    add_ledger(30, hours=30, team="nlp")
    rows = list(LedgerRow.objects.all())
    span = "from=2026-11-20T07:00Z&to=2026-11-21T08:00Z"
    first, last = datetime(2026, 11, 20, 7, tzinfo=UTC), datetime(2026, 11, 21, 8, tzinfo=UTC)

    for query, names in (
        ("", {}),
        ("holder=nlp", {"team": "nlp"}),
        ("holder=vision&deployment=d3", {"team": "vision", "deployment": "d3"}),
        ("model=m&revision=1", {}),
        ("kind=idle", {"team": "nobody"}),
    ):
        for client, visible in ((admin, {"vision", "nlp"}), (member, {"vision"})):
            expected = sum(
                (
                    row.cost_amount
                    for row in rows
                    if first <= row.hour < last
                    and row.team_slug in visible
                    and names.get("team", row.team_slug) == row.team_slug
                    and names.get("deployment", row.workload_labels["deployment"])
                    == row.workload_labels["deployment"]
                ),
                Decimal(0),
            )
            shown = page(client.get(f"/costs/ledger?{span}&{query}")).term("Total")
            assert shown == format_money(expected)


def test_a_kept_estimate_stands_in_the_ledger_by_group(
    admin: Client, node: Node, vision: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    occupy(node, vision, "detector", 1_000_000, None)
    SealedHour.objects.create(cluster=node.cluster, hour=HOUR, sealed_at=NOW)
    computed = page(admin.get("/costs/ledger"))
    monkeypatch.setattr(open_hours, "MANY_NODES", 0)
    open_hours.renew()
    assert OpenHourSum.objects.exists()

    kept = page(admin.get("/costs/ledger"))
    own = page(admin.get("/costs/ledger?holder=vision"))

    assert kept.term("Estimated") == computed.term("Estimated")
    assert {row["Node"] for row in kept.rows} == {"all nodes local"}
    assert [row["Workload"] for row in own.rows] == ["detector r1 vision estimated"]
    assert sorted(row["Cost"] for row in kept.rows) == sorted(row["Cost"] for row in computed.rows)


@pytest.mark.parametrize(
    ("address", "queries"),
    [
        ("/costs?group=deployment", COSTS_QUERIES),
        ("/costs/ledger", LEDGER_QUERIES),
        ("/api/v1/costs?group_by=deployment", API_QUERIES),
    ],
)
def test_more_rows_need_no_more_queries(
    admin: Client,
    node: Node,
    vision: Team,
    django_assert_num_queries: Any,
    address: str,
    queries: int,
) -> None:
    add_ledger(110)
    admin.get(address)
    with django_assert_num_queries(queries):
        admin.get(address)
    add_ledger(150, hours=2, team="nlp")
    admin.get(address)

    with django_assert_num_queries(queries):
        answer = admin.get(address)

    assert len(answer.content) < 150_000
