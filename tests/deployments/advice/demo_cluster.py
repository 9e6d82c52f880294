"""The embedded cluster of the demo as it is observed: its nodes, and the pods of the samples on them."""

from __future__ import annotations

from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from django.db.models import Sum

from deployments.models import Deployment, ModelVersion
from fleet.costs.services import ledger
from fleet.models import InstancePrice, LedgerRow, Workload, WorkloadHour
from fleet.observation.services import record
from fleet.observation.services.record import FullListing
from fleet.prices.services import catalogue as prices
from portal.accounts.policy import SYSTEM
from slipway_demo import sample_deployments as samples
from slipway_localcluster.controllers import nodes
from tests.deployments.world import World, make_versions
from tests.fleet.objects import pod, stamp

HOUR: Final = timedelta(hours=1)
A10G: Final = Decimal("1.006")
PARTS: Final = {"weights": 4, "activations": 20, "runtime": 450}
PLACES: Final = {
    "classifier": ("demo-a10g-1", "demo-a10g-2"),
    "archive": ("demo-a10g-3",),
    "ranker": ("demo-a10g-4", "demo-a10g-5"),
    "tags": ("demo-a10g-6",),
    "titles": ("demo-a10g-7",),
}


class Demo:
    """What `sample_start` does, without its waits, on a cluster that is told what it has."""

    def __init__(
        self, world: World, *, minutes: int = 35, seals: bool = False, serves: bool = True
    ) -> None:
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
        if not serves:
            return
        self._serve()
        world.clock.at = self.pods_from
        self.observe()
        if seals:
            ledger.seal_due()
        samples.write_history(cluster_id=world.cluster_id)

    def _serve(self) -> None:
        world = self.world
        samples.request_missing(
            actor=world.member, versions=self.versions(), cluster_id=world.cluster_id
        )
        samples.approve_waiting(actor=world.lead)
        world.work()
        for name in PLACES:
            world.cluster.make_ready(f"{name}-r1")
            world.reconcile_now(Deployment.objects.get(name=name))

    def versions(self) -> dict[str, ModelVersion]:
        """The two models, made once."""
        for name in (samples.MODEL, samples.SECOND_MODEL):
            if not ModelVersion.objects.filter(model__team=self.team, model__name=name).exists():
                version = make_versions(self.team, self.world.member, name)[0]
                version.signature = {"vram_parts_mib": PARTS, "max_batch_size": 64}
                version.vram_estimate_mib = 474
                version.save()
                self.world.store.lay_out(version)
        rows = ModelVersion.objects.filter(model__team=self.team, number=1)
        return {row.model.name: row for row in rows.select_related("model__team")}

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


def kept(world: World) -> Demo:
    """The demo with which many tests begin. The world of the test is no part of what is kept."""

    def make() -> Demo:
        made = Demo(world)
        del made.world
        return made

    demo = world.play("demo", make)
    demo.world = world
    return demo


def _hour(at: datetime) -> datetime:
    return at.replace(minute=0, second=0, microsecond=0)
