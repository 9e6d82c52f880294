"""Hours of nodes without a known price: sealed all the same, and priced when a price comes."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.costs.domain.results import UnpricedNode
from fleet.costs.selectors import costs, ledger_entries
from fleet.costs.selectors.ledger_filter import LedgerFilter
from fleet.costs.services import ledger
from fleet.models import Cluster, LedgerRow, UnpricedHour
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from fleet.prices.services import catalogue as prices
from portal.accounts.policy import SYSTEM
from tests.fleet.costs.observed import G5, HOUR, rows, see
from tests.fleet.objects import START, node, pod

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("detector")]


def test_hour_of_a_node_without_a_price_is_sealed_as_unpriced_and_priced_later(
    cluster: Cluster,
) -> None:
    see(cluster, START + HOUR)

    with time_machine.travel(START + HOUR + timedelta(minutes=5), tick=False):
        assert ledger.seal_due() == [START]
        assert ledger.price_late() == 0
        spend = costs.table(team_slugs=None, start=START, end=START + HOUR).spend
        assert spend.unpriced == (
            UnpricedNode("local", "node-1", "g5.xlarge", "on-demand", "us-east-1", hours=1),
        )
        assert (spend.total_amount, spend.gpu_hours) == (0, 1)
        sealed = LedgerRow.objects.values().get()
        assert (sealed["usd_per_hour_amount"], sealed["price_source"]) == (None, "")

        unpriced = costs.table(team_slugs=None, start=START, end=START + HOUR)
        prices.load_catalogue(actor=SYSTEM)
        assert (ledger.price_late(), ledger.price_late()) == (1, 0)
        spend = costs.table(team_slugs=None, start=START, end=START + HOUR).spend
        priced = costs.table(team_slugs=None, start=START, end=START + HOUR)

    assert [(r.is_unpriced, r.unpriced_gpu_hours, r.amount) for r in unpriced.rows] == [
        (True, 1, 0)
    ]
    assert unpriced.is_unpriced
    assert [(r.is_unpriced, r.unpriced_gpu_hours, r.amount) for r in priced.rows] == [
        (False, 0, G5)
    ]
    assert not priced.is_unpriced
    assert LedgerRow.objects.values().get(pk=sealed["id"]) == sealed
    assert rows() == [("allocated", "vision", Decimal(0)), ("adjustment", "vision", G5)]
    added = LedgerRow.objects.get(kind="adjustment")
    assert (added.usd_per_hour_amount, added.gpu_milliseconds) == (G5, 0)
    assert (spend.allocated_amount, spend.unpriced, spend.gpu_hours) == (G5, (), 1)


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    "odd",
    [
        {"karpenter.sh/capacity-type": "spot"},
        {"eks.amazonaws.com/capacityType": "SPOT"},
        {"topology.kubernetes.io/region": "eu-west-3"},
    ],
)
def test_one_node_without_a_price_holds_up_no_other(cluster: Cluster, odd: dict[str, str]) -> None:
    second = node("node-2", instance_type="g5.12xlarge", gpus=4)
    second["metadata"]["labels"].pop("karpenter.sh/capacity-type", None)
    second["metadata"]["labels"].update(odd)
    other = pod("other", node_name="node-2")
    listing = FullListing([node(), second], 50), FullListing([pod(), other], 50)
    record.replace_all(cluster_id=cluster.pk, nodes=listing[0], pods=listing[1], at=START)
    record.replace_all(cluster_id=cluster.pk, nodes=listing[0], pods=listing[1], at=START + HOUR)

    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        assert ledger.seal_due() == [START]
        spend = costs.table(team_slugs=["vision"], start=START, end=START + HOUR).spend
        hour = LedgerFilter(START, START + HOUR)
        entries = list(ledger_entries.entries(team_slugs=None, row_filter=hour))

    assert [(e.node_name, e.kind, e.cost_amount, e.is_priced) for e in entries] == [
        ("node-1", "allocated", G5, True),
        ("node-2", "allocated", Decimal(0), False),
        ("node-2", "idle", Decimal(0), False),
    ]
    assert spend.allocated_amount == G5
    assert [(one.node_name, one.hours) for one in spend.unpriced] == [("node-2", 1)]
    assert UnpricedHour.objects.count() == 1


def test_late_lease_of_an_unpriced_hour_is_adjusted_before_and_after_its_price(
    cluster: Cluster,
) -> None:
    see(cluster, START)
    see(cluster, START + HOUR)
    late = pod(version=60, phase="Succeeded", finished=START + HOUR / 2)
    with time_machine.travel(START + HOUR + timedelta(minutes=4), tick=False):
        ledger.seal_due()

    with time_machine.travel(START + HOUR + timedelta(minutes=10), tick=False):
        record.record(
            cluster_id=cluster.pk, changes=ObservedChanges(pods=[late]), at=START + HOUR + HOUR / 6
        )
        assert (ledger.correct_late(), ledger.correct_late()) == (2, 0)
        prices.load_catalogue(actor=SYSTEM)
        assert (ledger.price_late(), ledger.price_late()) == (2, 0)
        spend = costs.table(team_slugs=None, start=START, end=START + HOUR).spend

    assert (spend.allocated_amount, spend.idle_amount) == (Decimal("0.503"), Decimal("0.503"))
    assert (spend.gpu_hours, spend.unpriced) == (Decimal("0.5"), ())


def test_a_team_reads_only_of_unpriced_nodes_that_it_used(cluster: Cluster) -> None:
    see(cluster, START + HOUR)

    with time_machine.travel(START + HOUR + timedelta(minutes=5), tick=False):
        ledger.seal_due()
        spend = costs.table(team_slugs=["nlp"], start=START, end=START + 2 * HOUR).spend

    assert spend.unpriced == ()


def test_running_hour_without_a_price_counts_its_gpu_time(cluster: Cluster) -> None:
    see(cluster, START + HOUR / 2)

    with time_machine.travel(START + HOUR * 3 / 4, tick=False):
        spend = costs.table(team_slugs=["vision"], start=START, end=START + HOUR).spend

    assert (spend.estimated_amount, spend.gpu_hours) == (0, Decimal("0.5"))
    assert [(one.node_name, one.hours) for one in spend.unpriced] == [("node-1", 1)]
