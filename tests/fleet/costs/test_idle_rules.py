"""What a table does with idle: a row of its own, hidden, or shared so that the parts sum to it exactly."""

from __future__ import annotations

import csv
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from django.test import Client
from hypothesis import given, settings
from hypothesis import strategies as st

from fleet.costs.domain import idle
from fleet.costs.domain.results import CostRow, CostTable, GroupBy, IdleRule
from fleet.costs.selectors import costs
from fleet.costs.selectors.ledger_filter import IDLE
from fleet.models import LedgerRow, Node
from portal.accounts.models import Team
from tests.fleet.costs.test_ledger_days import FIRST, MICRO, hours, ledger_rows
from tests.fleet.costs.test_pages import ledger
from tests.fleet.costs.test_pages import ledger_rows as four_dollars
from tests.fleet.costs.test_ranking import insert
from tests.fleet.one_node import admin, member, nlp, node, still_clock, vision
from tests.page import Part, page

__all__ = ["admin", "four_dollars", "member", "nlp", "node", "still_clock", "vision"]
SHARED = (IdleRule.BY_COST, IdleRule.BY_GPU_TIME)
OF_HOLDERS = (GroupBy.TEAM, GroupBy.MODEL, GroupBy.DEPLOYMENT, GroupBy.REVISION)


@given(
    total=st.integers(-(10**13), 10**13),
    weights=st.lists(st.integers(0, 10**13), min_size=1, max_size=30).filter(any),
    size=st.integers(1, 30),
)
def test_parts_sum_exactly_and_do_not_depend_on_the_page(
    total: int, weights: list[int], size: int
) -> None:
    parts = idle.share(total, weights)
    whole = sum(weights)
    by_page = [
        part
        for at in range(0, len(weights), size)
        for part in idle.share(
            total, weights[at : at + size], before=sum(weights[:at]), whole=whole
        )
    ]

    assert sum(parts) == total
    assert by_page == parts
    for part, weight in zip(parts, weights, strict=True):
        assert abs(part * whole - total * weight) < whole


@pytest.mark.parametrize("weights", [[], [0, 0], [1, -1], [-5]])
def test_nothing_to_share_by_is_refused(weights: list[int]) -> None:
    with pytest.raises(ValueError, match="more than zero"):
        idle.share(10, weights)


@pytest.mark.django_db
@settings(max_examples=20, deadline=None)
@given(rows=ledger_rows, start=hours)
def test_shared_costs_are_the_cost_of_the_nodes_on_any_page(
    rows: list[Any], start: datetime
) -> None:
    span: dict[str, Any] = {"start": start, "end": start + timedelta(days=12), "team_slugs": None}
    with time_machine.travel(FIRST + timedelta(days=60), tick=False), transaction.atomic():
        insert(rows)
        inside = LedgerRow.objects.filter(hour__gte=span["start"], hour__lt=span["end"])
        of_nodes = sum((row.cost_amount for row in inside), Decimal(0))
        held = sum((row.cost_amount for row in inside.exclude(IDLE)), Decimal(0))
        for group in OF_HOLDERS:
            for rule in SHARED:
                whole = costs.table(group_by=group, idle_rule=rule, **span)
                check_sums(whole, of_nodes, rule)
                shown: list[CostRow] = []
                for offset in range(0, whole.row_count + 1, 2):
                    part = costs.table(
                        group_by=group, idle_rule=rule, limit=2, offset=offset, **span
                    )
                    check_sums(part, of_nodes, rule)
                    shown += part.rows
                assert tuple(shown) == whole.rows
            hidden = costs.table(group_by=group, idle_rule=IdleRule.HIDDEN, **span)
            assert (hidden.idle, hidden.total_amount) == (None, held)
        transaction.set_rollback(True)


def check_sums(table: CostTable, of_nodes: Decimal, rule: IdleRule) -> None:
    shown = sum((row.amount_with_idle for row in table.rows), Decimal(0))
    idle_row = table.idle.amount if table.idle else Decimal(0)
    assert shown + table.others_amount_with_idle + idle_row == table.total_amount == of_nodes
    assert (table.idle_rule is rule) or table.idle_rule is IdleRule.SEPARATE
    assert table.idle is None or table.idle_rule is IdleRule.SEPARATE
    assert all(row.idle_amount == row.idle_amount.quantize(MICRO) for row in table.rows)


def rows_of(shown: Part) -> list[dict[str, str]]:
    """Of the table of groups, which stands after that of the chart."""
    return [row for row in shown.rows if "GPU-hours" in row]


@pytest.mark.django_db
@pytest.mark.usefixtures("still_clock", "four_dollars")
class TestPage:
    """vision held $1.418, nlp $2.836, and $1.418 was idle; nlp held a quarter of the GPU time."""

    @pytest.fixture(autouse=True)
    def without_the_running_hour(self, vision: Team, nlp: Team, node: Node) -> None:
        ledger("allocated", "0", team_slug="vision", namespace="v", gpu_milliseconds=7_200_000)
        Node.objects.all().delete()

    @pytest.mark.parametrize(
        ("rule", "expected"),
        [
            ("by-cost", [["$2.84", "$0.95", "$3.78"], ["$1.42", "$0.47", "$1.89"]]),
            ("by-gpu-time", [["$2.84", "$0.35", "$3.19"], ["$1.42", "$1.06", "$2.48"]]),
        ],
    )
    def test_shared(self, admin: Client, rule: str, expected: list[list[str]]) -> None:
        shown = page(admin.get(f"/costs?idle={rule}"))

        columns = ("Cost", "Idle share", "With idle")
        rows = rows_of(shown)
        assert [[row[name] for name in columns] for row in rows[:2]] == expected
        assert shown.term("Spent").startswith("$5.67")
        assert "idle" not in [row[""] for row in rows]
        assert shown.term("Idle").startswith("$1.42 shared by")

    def test_hidden(self, admin: Client) -> None:
        shown = page(admin.get("/costs?idle=hidden"))

        assert shown.term("Spent").startswith("$4.25")
        assert [row[""] for row in rows_of(shown)[:2]] == ["nlp", "vision"]
        assert shown.term("Idle") == "$1.42 hidden"

    def test_clusters_have_their_own(self, admin: Client) -> None:
        shown = page(admin.get("/costs?group=cluster&idle=by-cost"))

        assert "Each cluster has its own idle cost" in shown.text
        assert [(row[""], row["Cost"]) for row in rows_of(shown)][:2] == [
            ("local", "$4.25"),
            ("idle", "$1.42"),
        ]
        assert shown.term("Spent").startswith("$5.67")

    def test_a_team_sees_none_of_it(self, member: Client) -> None:
        shown = page(member.get("/costs?idle=by-cost"))

        assert "Shared by cost" not in shown.text
        assert shown.term("Spent").startswith("$1.42")
        [row] = member.get("/api/v1/costs?idle=by-cost").json()["rows"]
        assert row["idle_amount"] == "0.000000"

    def test_downloads_and_rest(self, admin: Client) -> None:
        for path, name in (("/costs.csv", "total_usd"), ("/api/v1/costs.csv", "cost_usd")):
            text = admin.get(f"{path}?idle=by-cost").getvalue().decode()
            rows = list(csv.DictReader(text.splitlines()))
            assert [row["group"] for row in rows] == ["nlp", "vision"]
            assert sum(
                Decimal(row[name]) + Decimal(row["idle_share_usd"]) for row in rows
            ) == Decimal("5.672")

        answer = admin.get("/api/v1/costs?idle=by-cost&limit=1").json()
        assert (answer["idle"], answer["idle_rule"]) == (None, "by-cost")
        assert answer["rows"][0]["idle_amount"] == "0.945333"
        assert answer["others_idle_amount"] == "0.472667"
        assert answer["total_amount"] == "5.672000"
        assert admin.get("/api/v1/costs?idle=equally").status_code == 422
