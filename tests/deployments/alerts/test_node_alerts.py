"""Replicas on a node that is taken away, or whose GPU reports a fault: one alert that ends with it."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.alerts.services import sweep
from deployments.models import Alert, Deployment
from fleet.models import Node, Pod, Workload
from portal.core import clock
from tests.deployments.alerts.observed import alerts, told
from tests.deployments.world import World

pytestmark = pytest.mark.django_db
SPOT = {"key": "aws-node-termination-handler/spot-itn", "value": "", "effect": "NoSchedule"}
KARPENTER = {"key": "karpenter.sh/disrupted", "value": "", "effect": "NoSchedule"}
XID = {
    "type": "GPUHealthy",
    "status": "False",
    "reason": "Xid79",
    "message": "NVIDIA Xid 79",
    "since": "",
}


def test_a_fault_that_dcgm_exporter_measured_is_a_gpu_fault(world: World) -> None:
    _serving(world, on=("node-0", "node-1"))
    row = {"gpu": "3", "uuid": "GPU-3", "xid": 79, "since": ""}
    _set("node-0", xids=[row], xids_read_at=clock.now())
    # A program's own: of no GPU.
    _set("node-1", xids=[{**row, "xid": 13}], xids_read_at=clock.now())

    sweep.sweep()

    alert = Alert.objects.get()
    assert (alert.kind, alert.message) == ("gpu_fault", "1 of 2 replicas run on node-0 (XID 79).")
    _set("node-0", xids=[])
    sweep.sweep()
    sweep.sweep()
    assert Alert.objects.get().ended_at is not None


def test_a_reclaim_that_takes_replicas_notifies_once_and_ends_when_they_have_moved(
    world: World,
) -> None:
    _serving(world, on=("node-0", "node-1"))
    _set("node-0", taints=[SPOT])

    sweep.sweep()
    sweep.sweep()

    row = Alert.objects.get()
    assert (row.kind, row.subject) == ("node_reclaim", "Node reclaimed: vision/detector")
    assert row.message == "1 of 2 replicas run on node-0 (Spot interruption)."
    assert row.path == "/vision/deployments/detector"
    assert [event for event, _ in told()] == ["alert.opened"]

    Pod.objects.filter(node__name="node-0").update(ended_at=world.clock.at)
    sweep.sweep()

    assert alerts() == [("node_reclaim", "Node reclaimed: vision/detector", False)]
    assert [event for event, _ in told()] == ["alert.opened", "alert.ended"]


def test_an_xid_is_an_alert_until_its_node_is_gone(world: World) -> None:
    _serving(world, on=("node-0",))
    _set("node-0", conditions=[XID])

    sweep.sweep()

    row = Alert.objects.get()
    assert (row.kind, row.message) == ("gpu_fault", "1 of 1 replicas run on node-0 (XID 79).")
    Node.objects.filter(name="node-0").update(gone_at=world.clock.at)
    sweep.sweep()
    assert [is_open for *_, is_open in alerts()] == [False]


@pytest.mark.parametrize(
    ("changes", "kinds"),
    [
        ({"taints": [KARPENTER]}, []),
        ({"taints": [KARPENTER], "capacity_type": "spot"}, ["node_reclaim"]),
        ({"taints": [SPOT, KARPENTER], "conditions": [XID]}, ["gpu_fault", "node_reclaim"]),
        ({"taints": [{**SPOT, "key": "nvidia.com/gpu"}]}, []),
    ],
    ids=["a consolidation", "Karpenter takes a spot node", "both", "another taint"],
)
def test_what_opens_one(world: World, changes: dict[str, Any], kinds: list[str]) -> None:
    _serving(world, on=("node-0",))
    _set("node-0", **changes)

    sweep.sweep()

    assert sorted(Alert.objects.values_list("kind", flat=True)) == kinds


def test_a_node_without_replicas_of_anybody_is_nobodys_alert(world: World) -> None:
    _serving(world, on=("node-0",))
    _set("node-3", taints=[SPOT], conditions=[XID])

    sweep.sweep()

    assert alerts() == []


def test_four_nodes_are_named_by_three_and_a_number(world: World) -> None:
    _serving(world, on=("node-0", "node-1", "node-2", "node-3"))
    Node.objects.update(taints=[SPOT])

    sweep.sweep()

    named = ", ".join(f"node-{number} (Spot interruption)" for number in range(3))
    assert Alert.objects.get().message == f"4 of 4 replicas run on {named} and 1 more."


def _serving(world: World, *, on: tuple[str, ...]) -> Deployment:
    deployment = world.serving()
    workload = Workload.objects.get(name="detector-r1")
    for name in on:
        node = Node.objects.get(name=name)
        Pod.objects.create(
            cluster=node.cluster,
            node=node,
            node_name=name,
            workload=workload,
            namespace=deployment.namespace,
            name=f"detector-{name}",
            uid=f"detector-{name}",
            phase="Running",
            created_at=world.clock.at,
        )
    return deployment


def _set(name: str, **fields: Any) -> None:
    Node.objects.filter(name=name).update(**fields)
