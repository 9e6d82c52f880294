"""What ran on a node hour by hour: the rows sum to its cost, whoever reads them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal

import pytest
import time_machine

from fleet.capacity.domain.node_history import NodeHour
from fleet.capacity.selectors import node_history
from fleet.costs.domain.results import Step
from fleet.costs.services import ledger
from fleet.models import Cluster, InstancePrice, LedgerRow, Node, WorkloadHour
from fleet.observation.services import record, workloads
from fleet.observation.services.record import FullListing
from portal.accounts.models import Role, Team, User
from portal.accounts.policy import SYSTEM
from tests.accounts import make_membership, make_team, make_user
from tests.fleet import objects
from tests.fleet.costs.observed import G5, HOUR

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("catalogue")]
START = objects.START


@pytest.fixture
def nlp(cluster: Cluster, detector: int) -> Team:
    team = make_team(slug="nlp")
    workloads.register(
        cluster_id=cluster.pk,
        team=team,
        namespace="nlp",
        name="rank-r1",
        labels={"deployment": "rank", "revision": "1", "model": "nlp/rank"},
        triton_models=["rank"],
    )
    return team


@pytest.fixture
def member(vision: Team) -> User:
    person = make_user()
    make_membership(user=person, team=vision, role=Role.MEMBER)
    return person


def observe(cluster: Cluster, hours: int) -> Node:
    """Two GPUs: vision holds one from the start, nlp the other in the second hour."""
    node = objects.node(gpus=2, instance_type="g5.xlarge")
    first = objects.pod()
    second = objects.pod(
        "rank-r1-x",
        namespace="nlp",
        workload="rank-r1",
        created=START + HOUR,
        scheduled=START + HOUR,
        phase="Succeeded",
        finished=START + HOUR + timedelta(minutes=30, seconds=7),
    )
    at = START + hours * HOUR + timedelta(minutes=10)
    with time_machine.travel(at, tick=False):
        record.replace_all(
            cluster_id=cluster.pk,
            nodes=FullListing([node], 50),
            pods=FullListing([first, second], 50),
            at=at,
        )
        ledger.seal_due()
    return Node.objects.select_related("cluster").get()


def at_the_end(hours: int) -> time_machine.travel:
    return time_machine.travel(START + hours * HOUR + timedelta(minutes=10), tick=False)


def test_the_lines_of_each_hour_sum_to_the_nodes_cost(cluster: Cluster, nlp: Team) -> None:
    node = observe(cluster, 3)

    with at_the_end(3):
        page = node_history.hours(actor=SYSTEM, node=node, start=START, end=START + 4 * HOUR)

    assert [(hour.hour, hour.is_sealed) for hour in page.hours] == [
        (START + 3 * HOUR, False),
        (START + 2 * HOUR, True),
        (START + HOUR, True),
        (START, True),
    ]
    assert [hour.cost_amount for hour in page.hours] == [
        (G5 / 6).quantize(Decimal("0.000001")),
        G5,
        G5,
        G5,
    ]
    second = page.hours[2]
    assert [(line.label, line.holder.team_slug) for line in second.lines] == [
        ("detector", "vision"),
        ("rank", "nlp"),
        ("idle", ""),
    ]
    assert second.gpu_milliseconds == 2 * 3_600_000
    assert second.usd_per_hour_amount == G5
    assert second.price_source.startswith("karpenter-provider-aws")
    assert page.older_than is None


def test_other_teams_are_one_line_and_the_sum_stays(
    cluster: Cluster, nlp: Team, member: User
) -> None:
    node = observe(cluster, 3)

    with at_the_end(3):
        page = node_history.hours(actor=member, node=node, start=START, end=START + 4 * HOUR)
        period = node_history.period(actor=member, node=node, days=1, step=Step.HOUR)

    second = page.hours[2]
    assert [line.label for line in second.lines] == ["detector", "other teams", "idle"]
    assert second.cost_amount == G5
    assert [line.label for line in period.lines] == ["detector", "other teams", "idle"]
    assert "rank" not in repr(page) + repr(period)


def test_adjustments_are_part_of_their_hour(cluster: Cluster, nlp: Team) -> None:
    InstancePrice.objects.all().delete()
    node = observe(cluster, 2)
    with at_the_end(2):
        before = node_history.hours(actor=SYSTEM, node=node, start=START, end=START + 2 * HOUR)
        unpriced = node_history.period(actor=SYSTEM, node=node, days=1, step=Step.HOUR)
    InstancePrice.objects.create(
        instance_type="g5.xlarge",
        region="us-east-1",
        usd_per_hour_amount=G5,
        gpu_name="A10G",
        gpu_count=1,
        gpu_memory_mib=23028,
        vcpu=4,
        memory_gib=16,
        source="entered",
        valid_from=START.date(),
    )

    with at_the_end(2):
        ledger.price_late()
        after = node_history.hours(actor=SYSTEM, node=node, start=START, end=START + 2 * HOUR)

    assert [(hour.is_priced, hour.cost_amount) for hour in before.hours] == [(False, 0)] * 2
    assert unpriced.unpriced_hours == 2
    assert [(hour.is_priced, hour.cost_amount) for hour in after.hours] == [(True, G5)] * 2
    assert [hour.gpu_milliseconds for hour in after.hours] == [2 * 3_600_000] * 2


def test_pages_of_hours_have_each_hour_once(
    cluster: Cluster, nlp: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_history, "_LINES_PER_PAGE", 5)
    node = observe(cluster, 20)

    hours: list[NodeHour] = []
    older_than: datetime | None = START + 21 * HOUR
    with at_the_end(20):
        while older_than is not None:
            page = node_history.hours(actor=SYSTEM, node=node, start=START, end=older_than)
            hours += page.hours
            older_than = page.older_than

    assert [hour.hour for hour in hours] == [START + n * HOUR for n in range(20, -1, -1)]
    sealed = [row.cost_amount for row in LedgerRow.objects.all()]
    assert sum(hour.cost_amount for hour in hours[1:]) == sum(sealed) == 20 * G5


@pytest.mark.parametrize("step", [Step.HOUR, Step.DAY])
def test_a_period_sums_to_the_same_cost_by_hour_and_by_day(
    cluster: Cluster, nlp: Team, step: Step
) -> None:
    node = observe(cluster, 30)

    with at_the_end(30):
        period = node_history.period(actor=SYSTEM, node=node, days=7, step=step)

    expected = 30 * G5 + (G5 / 6).quantize(Decimal("0.000001"))
    assert period.cost_amount == expected
    by_step = [line.cost_amount for lines in period.by_step.values() for line in lines]
    assert sum(by_step) == expected
    assert len(period.by_step) == (31 if step is Step.HOUR else 2)


def test_hours_that_nobody_measured_are_gaps(cluster: Cluster, nlp: Team, detector: int) -> None:
    node = observe(cluster, 3)
    WorkloadHour.objects.create(
        workload_id=detector,
        start=START + HOUR,
        observed_ms=3_600_000,
        gpu_busy_ms=900_000,
        gpu_busy_source="dcgm",
    )

    with at_the_end(3):
        period = node_history.period(actor=SYSTEM, node=node, days=1, step=Step.HOUR)

    by_hour = {point.at: point for point in period.use}
    assert list(by_hour) == [START + n * HOUR for n in range(4)]
    assert by_hour[START].ratio is None
    assert by_hour[START].covered == 0
    measured = by_hour[START + HOUR]
    # nlp held the other GPU for 30 min 7 s and nobody measured it.
    assert measured.ratio == 0.25
    assert measured.covered == pytest.approx(3_600_000 / (3_600_000 + 1_807_000))
    assert measured.sources == ("GPU utilisation",)
    assert period.mean_use == 0.25
