"""The demo's samples, from their made-up history to a smaller bill; their nodes are those of the embedded cluster."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.db.models import Sum
from django.test import Client

from deployments.advice.services import refresh
from deployments.models import AdviceItem, ChangeRequest, Deployment
from deployments.states import AdviceState, ChangeState
from fleet.costs.services import demo_samples, ledger
from fleet.localcluster.controllers import nodes
from fleet.models import (
    InstancePrice,
    LedgerRow,
    Node,
    UnpricedHour,
    Workload,
    WorkloadHour,
)
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from fleet.prices.services import catalogue as prices
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from portal.management.demo import sample_deployments as samples
from tests.deployments.world import World, make_versions
from tests.fleet.objects import pod, stamp
from tests.page import page

SignIn = Callable[[User], Client]
HOUR = timedelta(hours=1)
A10G, SPOT = Decimal("1.006"), Decimal("0.4024")
PARTS = {"weights": 4, "activations": 20, "runtime": 450}
PLACES = {"classifier": ("demo-a10g-1", "demo-a10g-2"), "archive": ("demo-a10g-3",)}
pytestmark = pytest.mark.django_db


class Demo:
    """What `sample_start` does, without its waits, on a cluster that is told what it has."""

    def __init__(self, world: World, *, minutes: int = 35, seals: bool = False) -> None:
        """The pods start so many minutes after the nodes were first seen, on the hour."""
        self.world = world
        self.start = _hour(world.clock.at) + HOUR
        world.clock.at = self.start + HOUR / 2
        self.pods_from = self.start + timedelta(minutes=minutes)
        InstancePrice.objects.all().delete()
        prices.load_catalogue(actor=SYSTEM)
        self.team = samples.make_team()
        self.places = dict(PLACES)
        self.observe(pods=False)
        self._serve()
        world.clock.at = self.pods_from
        self.observe()
        if seals:
            ledger.seal_due()
        samples.write_history(cluster_id=world.cluster_id)

    def _serve(self) -> None:
        world = self.world
        version = make_versions(self.team, world.member)[0]
        version.signature, version.vram_estimate_mib = {"vram_parts_mib": PARTS}, 474
        version.save()
        world.store.lay_out(version)
        samples.request_missing(actor=world.member, version=version, cluster_id=world.cluster_id)
        samples.approve_waiting(actor=world.lead)
        world.work()
        for name in PLACES:
            world.cluster.make_ready(f"{name}-r1")
            world.reconcile_now(Deployment.objects.get(name=name))

    def observe(self, *, pods: bool = True) -> None:
        """A full listing at this moment."""
        items = [self._node(machine) for machine in (*nodes.SIMULATED, *nodes.SAMPLES)]
        running = [
            pod(
                f"{name}-r1-{place}",
                namespace="samples",
                workload=f"{name}-r1",
                node_name=place,
                created=self.pods_from,
                scheduled=self.pods_from,
            )
            for name, places in self.places.items()
            for place in places
        ]
        record.replace_all(
            cluster_id=self.world.cluster_id,
            nodes=FullListing(items, 50),
            pods=FullListing(running if pods else [], 50),
            at=self.world.clock.at,
        )

    def _node(self, machine: nodes.Machine) -> dict[str, Any]:
        node = nodes.node_of(machine, is_simulated=True)
        node["metadata"] |= {
            "uid": f"uid-{machine.name}",
            "resourceVersion": "9",
            "creationTimestamp": stamp(self.start),
        }
        return node

    def move_to(self, at: datetime) -> None:
        """Listed at that moment, and every hour that ended is sealed."""
        self.world.clock.at = at
        self.observe()
        ledger.seal_due()
        self._read()

    def _read(self) -> None:
        """The readings of every hour that pods held GPUs, without requests."""
        for workload in Workload.objects.filter(team=self.team):
            held = LedgerRow.objects.filter(workload_name=workload.name, is_demo=False)
            for hour in held.values_list("hour", flat=True).distinct():
                begin = max(self.pods_from, hour)
                WorkloadHour.objects.get_or_create(
                    workload=workload,
                    start=hour,
                    defaults={"observed_ms": (hour + HOUR - begin) // timedelta(milliseconds=1)},
                )

    def spent(self, hour: datetime, **of: Any) -> Decimal:
        rows = LedgerRow.objects.filter(hour=hour, **of)
        return Decimal(rows.aggregate(total=Sum("cost_amount"))["total"] or 0).quantize(A10G)


@pytest.fixture
def demo(world: World) -> Demo:
    return Demo(world)


def test_its_advice_names_five_kinds_and_says_that_their_hours_are_made_up(
    demo: Demo, signed_in: SignIn
) -> None:
    refresh.sweep()

    assert _advice() == [
        ("eks-test/demo-spot-1", "unused-node", _month(SPOT)),
        ("samples/archive", "idle", _month(A10G)),
        ("samples/classifier", "cheaper-instance", _month((A10G - Decimal("0.978")) * 2)),
        ("samples/classifier", "fewer-replicas", _month(A10G)),
        ("samples/classifier", "spot", _month((A10G - SPOT) * 2)),
    ]
    assert [str(item.saving_amount) for item in AdviceItem.objects.order_by("kind")] == [
        "40.88",
        "734.38",
        "734.38",
        "881.26",
        "293.75",
    ]
    marks = {tuple(item.evidence[-1]) for item in AdviceItem.objects.all()}
    assert marks == {("Sample history", "168 of 168 hours are made up")}
    shown = page(signed_in(demo.world.member).get("/advice")).text
    assert "168 of 168 hours are made up" in shown
    assert "demo-spot-1" not in shown, "of nodes platform admins decide"


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
    assert demo.spent(after, team_slug="samples") == 2 * A10G, "it was three"
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
    assert "1 node without a price. demo-lab-1 (NVIDIA-RTX-A6000, own, us-east-1;" in shown

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
    version = Deployment.objects.filter(team=demo.team)[0].stable_revision.version  # type: ignore[union-attr]
    world = demo.world
    assert demo_samples.have_history(samples.TEAM)
    assert not samples.request_missing(
        actor=world.member, version=version, cluster_id=world.cluster_id
    )
    assert not samples.write_history(cluster_id=world.cluster_id)

    now = LedgerRow.objects.count(), Deployment.objects.count(), ChangeRequest.objects.count()
    assert now == before


def test_an_hour_that_ends_while_the_samples_come_up_leaves_no_gap(world: World) -> None:
    late = Demo(world, minutes=61)

    held = late.start + HOUR
    assert {node.first_seen_at for node in demo_samples.nodes_of(world.cluster_id)} == {held}
    assert LedgerRow.objects.order_by("-hour")[0].hour == late.start
    late.move_to(held + 2.5 * HOUR)
    assert late.spent(late.start, workload_name="archive-r1") == A10G
    assert late.spent(held, workload_name="archive-r1") == (A10G * 59 / 60).quantize(A10G)
    # Nodes that exist from then on, at their price: nothing is charged twice.
    assert late.spent(late.start, node_name="demo-a10g-3") == A10G
    refresh.sweep()
    item = AdviceItem.objects.get(kind="idle")
    assert item.evidence[-1] == ["Sample history", "166 of 168 hours are made up"]
    # The week has one hour of 59 minutes.
    assert item.saving_amount == _month((A10G * 168 - A10G / 60) / 168)


def test_an_hour_that_was_sealed_meanwhile_stays_as_it_is(world: World) -> None:
    """The advice then comes after a week of observed hours."""
    late = Demo(world, minutes=66, seals=True)

    assert {node.first_seen_at for node in demo_samples.nodes_of(world.cluster_id)} == {late.start}
    assert LedgerRow.objects.filter(is_demo=True).order_by("-hour")[0].hour == late.start - HOUR
    assert late.spent(late.start, node_name="demo-a10g-3", kind="idle") == A10G
    assert late.spent(late.start, node_name="demo-a10g-3") == A10G


def _advice() -> list[tuple[str, str, Decimal]]:
    rows = AdviceItem.objects.order_by("subject", "kind")
    return list(rows.values_list("subject", "kind", "saving_amount"))


def _month(usd_per_hour: Decimal) -> Decimal:
    return (usd_per_hour * 730).quantize(Decimal("0.01"))


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)


def test_nodes_of_the_samples_are_there_only_with_them() -> None:
    plain, with_samples = nodes.names(None), nodes.names(None, has_samples=True)

    assert with_samples - plain == {machine.name for machine in nodes.SAMPLES}
    assert nodes.names(nodes.SIMULATED[0], has_samples=True) == {nodes.SIMULATED[0].name}
    assert Node.objects.count() == 0
