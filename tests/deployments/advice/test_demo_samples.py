"""The demo's samples, from their made-up history to a smaller bill; their nodes are those of the embedded cluster."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

import pytest
from django.test import Client

from deployments.advice.domain.evidence import EvidenceLine
from deployments.advice.services import refresh
from deployments.models import AdviceItem, ChangeRequest, Deployment
from deployments.states import AdviceState, ChangeState
from fleet.costs.services import demo_samples, ledger
from fleet.models import (
    LedgerRow,
    Node,
    UnpricedHour,
)
from portal.accounts.models import User
from slipway_demo import sample_deployments as samples
from slipway_localcluster.controllers import nodes
from tests.deployments.advice import demo_cluster
from tests.deployments.advice.demo_cluster import A10G, HOUR, PLACES, Demo
from tests.deployments.world import World
from tests.page import page

SignIn = Callable[[User], Client]
SPOT = Decimal("0.4024")
pytestmark = pytest.mark.django_db


@pytest.fixture
def demo(world: World) -> Demo:
    return demo_cluster.kept(world)


def test_its_advice_names_seven_kinds_and_says_that_their_hours_are_made_up(
    demo: Demo, signed_in: SignIn
) -> None:
    refresh.sweep()

    assert _advice() == [
        ("eks-test/demo-spot-1", "unused-node", _month(SPOT)),
        ("samples/archive", "idle", _month(A10G)),
        ("samples/classifier", "cheaper-instance", _month((A10G - Decimal("0.978")) * 2)),
        ("samples/classifier", "fewer-replicas", _month(A10G)),
        ("samples/classifier", "spot", _month((A10G - SPOT) * 2)),
        ("samples/ranker", "cheaper-instance", _month((A10G - Decimal("0.978")) * 2)),
        ("samples/ranker", "larger-batches", _month(A10G)),
        ("samples/ranker", "spot", _month((A10G - SPOT) * 2)),
        ("samples/tags", "spot", _month(A10G - SPOT)),
        ("samples/titles", "cheaper-instance", _month(A10G - Decimal("0.978"))),
        ("samples/titles", "multi-model", _month(A10G)),
        ("samples/titles", "spot", _month(A10G - SPOT)),
    ]
    assert AdviceItem.objects.get(kind="larger-batches").message == (
        "Turn on dynamic batching and run 1 replica instead of 2: a request waits 83.1 ms and is executed in 22.1 ms."
    )
    assert AdviceItem.objects.get(kind="multi-model").message == (
        "Serve filetype-int8:1 from samples/tags and then stop samples/titles: the models of 2 deployments fit one Triton."
    )
    marks = {EvidenceLine.from_json(item.evidence[-1]) for item in AdviceItem.objects.all()}
    assert marks == {EvidenceLine("Demo data", "168 of 168 hours")}
    shown = page(signed_in(demo.world.member).get("/advice")).text
    assert "168 of 168 hours" in shown
    assert "demo-spot-1" not in shown, "of nodes platform admins decide"
    node = Node.objects.get(name="demo-spot-1")
    links = page(signed_in(demo.world.admin).get("/advice")).links
    assert links["eks-test/demo-spot-1"] == f"/fleet/nodes/{node.pk}"
    assert links["Request a drain"] == f"/fleet/nodes/{node.pk}/drain"


def test_its_made_up_hours_are_of_the_models_and_revisions_that_run(
    demo: Demo, signed_in: SignIn
) -> None:
    demo.move_to(demo.start + 2.5 * HOUR)
    made_up = LedgerRow.objects.filter(is_demo=True, team_slug="samples")
    measured = LedgerRow.objects.filter(is_demo=False, team_slug="samples")

    for label in ("deployment", "revision", "model", "version"):
        values = [
            set(rows.values_list(f"workload_labels__{label}", flat=True))
            for rows in (made_up, measured)
        ]
        assert values[0] == values[1] != set(), label
    by_revision = page(signed_in(demo.world.admin).get("/costs?group=revision&team=samples"))
    names = sorted(row[""] for row in by_revision.rows if "GPU-hours" in row)
    assert names == [f"samples/{name} r1" for name in sorted(PLACES)]


def test_one_click_and_its_approval_halve_the_bill_of_the_next_hours(
    demo: Demo, signed_in: SignIn
) -> None:
    world, start = demo.world, demo.start
    refresh.sweep()
    item = AdviceItem.objects.get(kind="fewer-replicas")

    answer = signed_in(world.member).post(f"/advice/{item.pk}/request")

    change = ChangeRequest.objects.get(kind="scale")
    assert answer["Location"] == f"/approvals/{change.pk}"
    assert change.state == ChangeState.SUBMITTED
    demo.move_to(start + 2.5 * HOUR)
    of_classifier = {"workload_name": "classifier-r1"}
    assert demo.spent(start + HOUR, **of_classifier) == 2 * A10G, "nothing changed yet"

    decision = {"decision": "approve", "evidence_hash": change.evidence_hash}
    signed_in(world.lead).post(f"/approvals/{change.pk}", decision)
    world.work()
    world.reconcile_now(Deployment.objects.get(name="classifier"))
    change.refresh_from_db()
    assert change.state == ChangeState.DONE, change.state_reason
    applied = world.cluster.objects["InferenceService", "samples", "classifier-r1"]
    assert applied["spec"]["predictor"]["minReplicas"] == 1
    demo.places["classifier"] = ("demo-a10g-1",)
    demo.move_to(start + 4.5 * HOUR)

    after = start + 3 * HOUR
    assert demo.spent(after, **of_classifier) == A10G
    assert demo.spent(after, node_name="demo-a10g-2", kind="idle") == A10G
    assert demo.spent(after, team_slug="samples") == 6 * A10G, "it was seven"
    refresh.sweep()
    item.refresh_from_db()
    assert item.state == AdviceState.APPLIED
    assert not LedgerRow.objects.filter(hour__gte=start, is_demo=True).exists()


def test_its_spot_node_is_priced_as_spot_and_its_own_hardware_once_someone_enters_a_price(
    demo: Demo, signed_in: SignIn
) -> None:
    hour = demo.start + HOUR
    demo.move_to(demo.start + 2.5 * HOUR)

    spot = LedgerRow.objects.get(hour=hour, node_name="demo-spot-1")
    lab = LedgerRow.objects.get(hour=hour, node_name="demo-lab-1")
    assert (spot.capacity_type, spot.cost_amount) == ("spot", SPOT)
    assert (lab.capacity_type, lab.cost_amount, lab.usd_per_hour_amount) == ("own", 0, None)
    admin = signed_in(demo.world.admin)
    shown = page(admin.get("/costs")).text
    assert "1 node without a price. demo-lab-1 (NVIDIA-RTX-A6000, own, us-east-1, " in shown

    saved = admin.post(
        "/admin/prices/enter",
        {
            "instance_type": "NVIDIA-RTX-A6000",
            "region": "us-east-1",
            "capacity_type": "own",
            "usd_per_hour": "0.9",
            "valid_from": demo.start.date().isoformat(),
            "source": "what the lab charges",
        },
    )
    assert saved.status_code == 302, page(saved).text
    assert ledger.price_late() == 2

    added = LedgerRow.objects.get(hour=hour, node_name="demo-lab-1", kind="adjustment")
    assert (added.cost_amount, added.gpu_milliseconds) == (Decimal("0.9"), 0), "two GPUs"
    lab.refresh_from_db()
    assert lab.cost_amount == 0, "what is sealed stays"
    assert not UnpricedHour.objects.exists()
    assert "without a price" not in page(admin.get("/costs")).text


def test_a_second_start_adds_nothing(demo: Demo) -> None:
    before = LedgerRow.objects.count(), Deployment.objects.count(), ChangeRequest.objects.count()

    samples.make_team()
    world = demo.world
    assert demo_samples.have_history(samples.TEAM)
    assert not samples.request_missing(
        actor=world.member, versions=demo.versions(), cluster_id=world.cluster_id
    )
    assert not samples.write_history(cluster_id=world.cluster_id)

    now = LedgerRow.objects.count(), Deployment.objects.count(), ChangeRequest.objects.count()
    assert now == before


def test_an_hour_that_ends_while_the_samples_come_up_leaves_no_gap(world: World) -> None:
    late = Demo(world, minutes=61)

    held = late.start + HOUR
    assert {node.first_seen_at for node in demo_samples.list_demo_nodes(world.cluster_id)} == {held}
    assert LedgerRow.objects.order_by("-hour")[0].hour == late.start
    late.move_to(held + 2.5 * HOUR)
    assert late.spent(late.start, workload_name="archive-r1") == A10G
    assert late.spent(held, workload_name="archive-r1") == (A10G * 59 / 60).quantize(A10G)
    # Nodes that exist from then on, at their price: nothing is charged twice.
    assert late.spent(late.start, node_name="demo-a10g-3") == A10G
    refresh.sweep()
    item = AdviceItem.objects.get(kind="idle")
    assert item.evidence[-1] == {
        "name": "Demo data",
        "value": "166 of 168 hours",
    }
    # The week has one hour of 59 minutes.
    assert item.saving_amount == _month((A10G * 168 - A10G / 60) / 168)


def test_an_hour_that_was_sealed_meanwhile_stays_as_it_is(world: World) -> None:
    """The advice then comes after a week of observed hours."""
    late = Demo(world, minutes=66, seals=True)

    assert {node.first_seen_at for node in demo_samples.list_demo_nodes(world.cluster_id)} == {
        late.start
    }
    assert LedgerRow.objects.filter(is_demo=True).order_by("-hour")[0].hour == late.start - HOUR
    assert late.spent(late.start, node_name="demo-a10g-3", kind="idle") == A10G
    assert late.spent(late.start, node_name="demo-a10g-3") == A10G


def _advice() -> list[tuple[str, str, Decimal]]:
    rows = AdviceItem.objects.order_by("subject", "kind")
    return list(rows.values_list("subject", "kind", "saving_amount"))


def _month(usd_per_hour: Decimal) -> Decimal:
    return (usd_per_hour * 730).quantize(Decimal("0.01"))


def test_nodes_of_the_samples_are_there_only_with_them() -> None:
    plain, with_samples = nodes.names(None), nodes.names(None, has_samples=True)

    assert with_samples - plain == {machine.name for machine in nodes.SAMPLES}
    assert nodes.names(nodes.SIMULATED[0], has_samples=True) == {nodes.SIMULATED[0].name}
    assert Node.objects.count() == 0
