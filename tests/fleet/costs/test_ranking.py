"""Groups that the database ranks: pages of a table have every group once, in the order of its exact sum."""

from __future__ import annotations

from collections import defaultdict
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import transaction
from hypothesis import given, settings

from fleet.costs.domain.results import GroupBy
from fleet.costs.selectors import costs, usage
from fleet.costs.selectors.ledger_filter import IDLE
from fleet.gpus.domain.intervals import HOUR_MS
from fleet.models import Cluster, LedgerRow
from tests.fleet.costs.observed import see
from tests.fleet.costs.test_ledger_days import FIRST, MICRO, hours, ledger_rows
from tests.fleet.objects import START

pytestmark = pytest.mark.django_db


def insert(rows: list[Any]) -> None:
    LedgerRow.objects.bulk_create(
        LedgerRow(
            **(names | amounts),
            node_uid=f"n{number}",
            node_name="n",
            instance_type="g5.xlarge",
            sealed_at=FIRST,
        )
        for number, (names, amounts) in enumerate(rows)
    )


def ranked(start: datetime, end: datetime, group: GroupBy) -> list[tuple[list[str], Decimal, int]]:
    """Names, cost and GPU milliseconds of all groups that are not idle, added up row by row."""
    sums: dict[tuple[str, ...], list[Any]] = defaultdict(lambda: [Decimal(0), 0])
    for row in LedgerRow.objects.filter(hour__gte=start, hour__lt=end).exclude(IDLE):
        labels = [str(row.workload_labels.get(n) or "") for n in usage.grouping_labels(group)]
        names = [row.cluster_name] if group is GroupBy.CLUSTER else [row.team_slug, *labels]
        total = sums[tuple(names)]
        total[0] += row.cost_amount
        total[1] += row.gpu_milliseconds
    ordered = sorted(sums.items(), key=lambda item: (-item[1][0], item[0]))
    return [(list(names), cost, ms) for names, (cost, ms) in ordered]


@settings(max_examples=20, deadline=None)
@given(rows=ledger_rows, start=hours)
def test_pages_are_the_groups_by_their_sum_then_by_name(rows: list[Any], start: datetime) -> None:
    end = start + timedelta(days=12)
    with time_machine.travel(FIRST + timedelta(days=60), tick=False), transaction.atomic():
        # Equal amounts are common: names decide between them.
        insert(
            [(names, sums | {"cost_amount": sums["cost_amount"] // 100}) for names, sums in rows]
        )
        for group in GroupBy:
            expected = ranked(start, end, group)
            shown: list[Any] = []
            for offset in range(0, len(expected) + 1, 2):
                page = costs.table(
                    team_slugs=None, start=start, end=end, group_by=group, limit=2, offset=offset
                )
                of_page = sum((row.amount for row in page.rows), Decimal(0))
                assert page.row_count == len(expected)
                assert of_page + page.others_amount == sum(cost for _, cost, _ in expected)
                shown += page.rows
            keys = [usage.build_key(group, names, is_idle=False) for names, _, _ in expected]
            assert [row.key for row in shown] == keys
            assert [row.amount for row in shown] == [cost for _, cost, _ in expected]
            assert [row.gpu_hours for row in shown] == [
                (Decimal(ms) / HOUR_MS).quantize(MICRO) for _, _, ms in expected
            ]
            whole = costs.table(team_slugs=None, start=start, end=end, group_by=group)
            assert [row.key for row in whole.rows] == keys
        transaction.set_rollback(True)


@pytest.mark.usefixtures("detector", "catalogue")
def test_an_estimate_ranks_with_what_is_sealed(cluster: Cluster) -> None:
    """vision costs nothing that is sealed, and a dollar in the hour that runs."""
    hour = START - timedelta(hours=3)
    insert(
        [
            (
                {"hour": hour, "kind": "allocated", "team_slug": team, "namespace": team},
                {"cost_amount": Decimal(cost), "gpu_milliseconds": 1, "cluster_name": "local"},
            )
            for team, cost in (("nlp", "0.9"), ("speech", "2"), ("text", "0.9"))
        ]
    )
    see(cluster, START)
    see(cluster, START + timedelta(hours=1))

    with time_machine.travel(START + timedelta(hours=1), tick=False):
        table = costs.table(
            team_slugs=None, start=hour, end=START + timedelta(hours=1), limit=2, offset=1
        )

    assert [(row.key.team_slug, row.amount) for row in table.rows] == [
        ("vision", Decimal("1.006000")),
        ("nlp", Decimal("0.900000")),
    ]
    assert table.rows[0].estimated_amount == table.rows[0].amount
    assert (table.row_count, table.others_amount) == (4, Decimal("2.900000"))


def test_spent_this_month_is_that_of_one_team(cluster: Cluster) -> None:
    insert(
        [
            (
                {"hour": hour, "kind": "allocated", "team_slug": team, "namespace": team},
                {"cost_amount": Decimal(cost), "gpu_milliseconds": 1, "is_demo": cost == "3"},
            )
            for team, cost, hour in (
                ("vision", "1.5", datetime.fromisoformat("2026-11-01T00:00Z")),
                ("vision", "3", datetime.fromisoformat("2026-11-20T09:00Z")),
                ("vision", "7", datetime.fromisoformat("2026-10-31T23:00Z")),
                ("nlp", "20", datetime.fromisoformat("2026-11-20T09:00Z")),
            )
        ]
    )

    with time_machine.travel("2026-11-20T12:00Z", tick=False):
        vision = costs.sum_spend_this_month(team_slug="vision")
        nlp = costs.sum_spend_this_month(team_slug="nlp")

    assert (vision.allocated_amount, vision.estimated_amount) == (Decimal("4.5"), 0)
    assert (vision.has_demo_data, nlp.has_demo_data) == (True, False)
    assert nlp.total_amount == 20
