from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.db import DatabaseError, connection, transaction

from fleet.costs.domain.results import GroupBy, GroupKey, Step
from fleet.costs.selectors import costs, ledger_entries, series
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.costs.services import ledger
from fleet.models import Cluster, GpuLease, InstancePrice, LedgerRow, SealedHour
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from tests.fleet.costs.observed import G5, HOUR, rows, see
from tests.fleet.objects import START, node, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("detector")]


@pytest.mark.usefixtures("catalogue")
def test_hour_is_sealed_once_and_sums_to_the_nodes_cost(cluster: Cluster) -> None:
    see(cluster, START)
    ended = pod(version=2, phase="Succeeded", finished=START + HOUR / 4)
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(pods=[ended]), at=START + HOUR / 2)
    see(cluster, START + HOUR, pods=[ended])

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        assert ledger.seal_due() == [START]
        assert ledger.seal_due() == []

    assert rows() == [
        ("allocated", "vision", Decimal("0.251500")),
        ("idle", "", Decimal("0.754500")),
    ]
    assert sum(row[2] for row in rows()) == G5


@pytest.mark.usefixtures("catalogue")
def test_each_pod_costs_what_its_own_node_does_whatever_types_the_deployment_allows(
    cluster: Cluster,
) -> None:
    nodes = [node("g5"), node("g6", instance_type="g6.xlarge")]
    pods = [pod(node_name="g5"), pod(node_name="g6", name="detector-2", uid="detector-2")]
    for at in (START, START + HOUR):
        record.replace_all(
            cluster_id=cluster.pk,
            nodes=FullListing(nodes, 50),
            pods=FullListing(pods, 50),
            at=at,
        )

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()

    charged = LedgerRow.objects.filter(kind="allocated", cost_amount__gt=0)
    assert sorted(charged.values_list("team_slug", "instance_type", "cost_amount")) == [
        ("vision", "g5.xlarge", Decimal("1.006000")),
        ("vision", "g6.xlarge", Decimal("0.804800")),
    ]


@pytest.mark.usefixtures("catalogue")
def test_hour_waits_for_the_observation_that_ends_it(cluster: Cluster) -> None:
    see(cluster, START + HOUR - timedelta(seconds=1))

    with time_machine.travel(START + 2 * HOUR, tick=False):
        assert ledger.seal_due() == []
        see(cluster, START + HOUR)
        assert ledger.seal_due() == [START]


@pytest.mark.usefixtures("catalogue")
def test_late_knowledge_becomes_an_adjustment_and_only_once(cluster: Cluster) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()
    before = rows()
    late = pod(version=60, phase="Succeeded", finished=START + HOUR / 2)

    with time_machine.travel(START + HOUR + timedelta(minutes=10), tick=False):
        record.record(
            cluster_id=cluster.pk, changes=ObservedChanges(pods=[late]), at=START + HOUR + HOUR / 6
        )
        added = ledger.correct_late(), ledger.correct_late()

    assert added == (2, 0)
    assert rows()[: len(before)] == before
    assert rows()[len(before) :] == [
        ("adjustment", "vision", Decimal("-0.503000")),
        ("adjustment", "", Decimal("0.503000")),
    ]
    with time_machine.travel(START + HOUR + timedelta(minutes=10), tick=False):
        spend = costs.table(team_slugs=None, start=START, end=START + HOUR).spend
    assert (spend.allocated_amount, spend.idle_amount) == (Decimal("0.503"), Decimal("0.503"))


@pytest.mark.usefixtures("catalogue")
def test_usage_observed_before_sealing_and_written_after_is_adjusted(
    cluster: Cluster,
) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    sealed_at = START + HOUR + timedelta(minutes=4)
    with time_machine.travel(sealed_at, tick=False):
        ledger.seal_due()
    ended = pod(version=60, phase="Succeeded", finished=START + HOUR / 2)

    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(pods=[ended]),
        at=sealed_at - timedelta(seconds=20),
    )
    with time_machine.travel(sealed_at + timedelta(seconds=30), tick=False):
        added = ledger.correct_late(), ledger.correct_late()

    assert added == (2, 0)


@pytest.mark.usefixtures("catalogue")
def test_sealed_rows_cannot_be_changed_or_deleted(cluster: Cluster) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("the triggers are PostgreSQL's")
    see(cluster, START + HOUR)
    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()

    with pytest.raises(DatabaseError, match="adjustment row"), transaction.atomic():
        LedgerRow.objects.update(cost_amount=0)
    with pytest.raises(DatabaseError, match="adjustment row"), transaction.atomic():
        LedgerRow.objects.all().delete()
    with (
        pytest.raises(DatabaseError, match="adjustment row"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("TRUNCATE fleet_ledgerrow CASCADE")
    assert LedgerRow.objects.exists()


@pytest.mark.usefixtures("catalogue")
def test_running_hour_is_estimated_up_to_the_last_recheck_and_marked(cluster: Cluster) -> None:
    see(cluster, START + HOUR / 2)

    with time_machine.travel(START + HOUR * 3 / 4, tick=False):
        spend = costs.table(team_slugs=["vision"], start=START, end=START + HOUR).spend

    assert (spend.allocated_amount, spend.estimated_amount) == (0, Decimal("0.503000"))
    assert (spend.gpu_hours, spend.idle_amount, spend.sealed_to) == (Decimal("0.5"), 0, None)


@pytest.mark.usefixtures("catalogue")
def test_sealing_moves_the_estimate_and_changes_no_sum(cluster: Cluster) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        before = costs.table(team_slugs=None, start=START, end=START + HOUR).spend
        ledger.seal_due()
        after = costs.table(team_slugs=None, start=START, end=START + HOUR).spend

    assert before.estimated_amount == after.allocated_amount == G5
    assert (before.allocated_amount, after.estimated_amount) == (0, 0)
    assert after.sealed_to == START + HOUR


@pytest.mark.usefixtures("catalogue")
def test_table_and_series_sum_to_the_same_total(cluster: Cluster) -> None:
    see(cluster, START)
    orphan = pod("orphan", workload="", namespace="default")
    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(nodes=[node("node-2", instance_type="g5.12xlarge", gpus=4)]),
        at=START,
    )
    record.record(
        cluster_id=cluster.pk,
        changes=ObservedChanges(pods=[orphan | {"spec": {**orphan["spec"], "nodeName": "node-2"}}]),
        at=START,
    )
    nodes = [node(), node("node-2", instance_type="g5.12xlarge", gpus=4)]
    pods = [pod(), orphan]
    for hour in (1, 2):
        record.replace_all(
            cluster_id=cluster.pk,
            nodes=FullListing(nodes, 50),
            pods=FullListing(pods, 50),
            at=START + hour * HOUR,
        )

    with time_machine.travel(START + 2 * HOUR + timedelta(minutes=1), tick=False):
        ledger.seal_due()
        span: dict[str, Any] = {"start": START, "end": START + 2 * HOUR}
        total = 2 * (G5 + Decimal("5.672"))
        for group in GroupBy:
            table = costs.table(team_slugs=None, group_by=group, **span)
            amounts = [row.amount for row in table.rows] + (
                [table.idle.amount] if table.idle else []
            )
            assert sum(amounts) == table.total_amount == total
        for step in Step:
            points = series.series(team_slugs=None, step=step, **span)
            assert sum(point.amount for point in points) == total
        entries = list(ledger_entries.entries(team_slugs=None, row_filter=LedgerFilter(**span)))
        assert sum(entry.cost_amount for entry in entries) == total
        mine = costs.table(team_slugs=["vision"], group_by=GroupBy.MODEL, **span)

    assert SealedHour.objects.count() == 1
    assert [(row.key, row.amount) for row in mine.rows] == [
        (GroupKey(team_slug="vision", model="vision/detector"), 2 * G5)
    ]
    assert mine.idle is None


@pytest.mark.usefixtures("catalogue")
def test_costs_take_a_constant_number_of_queries(
    cluster: Cluster, django_assert_max_num_queries: object
) -> None:
    nodes = [node(f"node-{n}") for n in range(20)]
    pods = [pod(f"pod-{n}", node_name=f"node-{n}") for n in range(20)]
    record.record(cluster_id=cluster.pk, changes=ObservedChanges(nodes=nodes, pods=pods), at=START)
    see_all = FullListing(nodes, 50), FullListing(pods, 50)
    record.replace_all(cluster_id=cluster.pk, nodes=see_all[0], pods=see_all[1], at=START + HOUR)

    with (
        time_machine.travel(START + HOUR + timedelta(minutes=1), tick=False),
        django_assert_max_num_queries(14),  # type: ignore[operator]
    ):
        costs.table(team_slugs=None, start=START, end=START + HOUR)

    assert GpuLease.objects.count() == 20


@pytest.mark.usefixtures("catalogue")
def test_sealed_hour_keeps_its_price_when_it_is_adjusted(cluster: Cluster) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    late = pod(version=60, phase="Succeeded", finished=START + HOUR / 2)
    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()
    for corrected in ("2.012", None):
        if corrected:
            InstancePrice.objects.update(usd_per_hour_amount=Decimal(corrected))
        else:
            InstancePrice.objects.all().delete()

        with time_machine.travel(START + HOUR + timedelta(minutes=10), tick=False):
            record.record(
                cluster_id=cluster.pk,
                changes=ObservedChanges(pods=[late]),
                at=START + HOUR + HOUR / 6,
            )
            ledger.correct_late()
            spend = costs.table(team_slugs=None, start=START, end=START + HOUR).spend

        assert (sum(row[2] for row in rows()), spend.allocated_amount) == (G5, G5 / 2)
    sources = set(LedgerRow.objects.values_list("price_source", "usd_per_hour_amount"))
    assert len(sources) == 1
