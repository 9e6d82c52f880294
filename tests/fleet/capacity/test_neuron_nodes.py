"""A node of inf2 in the fleet: its devices, their price, what is free of them, and who pays for them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.capacity.selectors import capacity, fit, node_spaces, overview
from fleet.capacity.selectors.fit import Fit, ReplicaSize
from fleet.clusters.domain import node_pools
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.node_pools import KarpenterRequirement, NodePool
from fleet.clusters.services.capabilities import gpu_offers
from fleet.costs.services import ledger
from fleet.gpus.domain import shares
from fleet.models import Cluster, GpuLease, LedgerRow, Node
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from portal.accounts.models import User
from tests.fleet.neuron_nodes import CORE, DEVICE, neuron_node
from tests.fleet.objects import START, pod
from tests.page import page

pytestmark = pytest.mark.django_db


def see(cluster: Cluster, *items: dict[str, Any]) -> None:
    changes = ObservedChanges(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)


def fits(cluster: Cluster, *, replicas: int = 1, **fields: Any) -> Fit:
    size: dict[str, Any] = {"instance_types": ("inf2.24xlarge",), "gpu_resource": DEVICE, "gpus": 1}
    return fit.fits_now(
        node_spaces.list_spaces(cluster.pk),
        size=ReplicaSize(**(size | fields)),
        replicas=replicas,
    )


def free(cluster: Cluster) -> dict[str, int]:
    [space] = node_spaces.list_spaces(cluster.pk)
    return space.free


@pytest.mark.parametrize("is_labelled", [True, False])
def test_a_node_of_inf2_has_devices_with_their_memory_and_cores(
    cluster: Cluster, *, is_labelled: bool
) -> None:
    see(cluster, neuron_node(is_labelled=is_labelled))

    node = Node.objects.get()
    assert (node.gpu_product, node.gpu_count, node.gpu_memory_mib) == ("Inferentia2", 6, 32768)
    assert shares.read_gpus(node.labels, node.allocatable).neuron_cores == 2


@pytest.mark.usefixtures("catalogue")
def test_devices_are_offered_with_their_part_of_the_nodes_price(cluster: Cluster) -> None:
    see(cluster, neuron_node())

    offered = [s for s in capacity.list_shares(cluster_id=cluster.pk) if s.nodes]

    assert [(s.gpu_resource, s.gpus, s.usd_per_hour_amount, s.vram_mib) for s in offered] == [
        (DEVICE, 1, Decimal("1.081772"), 32768),
        (DEVICE, 2, Decimal("2.163543"), 65536),
        (DEVICE, 4, Decimal("4.327087"), 131072),
    ]
    assert [s.free_now for s in offered] == [6, 3, 1]


def test_devices_of_a_torus_are_offered_in_its_parts(cluster: Cluster) -> None:
    see(cluster, neuron_node(instance_type="trn1.32xlarge", devices=16))

    assert [s.gpus for s in capacity.list_shares(cluster_id=cluster.pk)] == [1, 4, 8, 16]


@pytest.mark.usefixtures("detector")
def test_devices_and_cores_of_pods_are_the_same_hardware(cluster: Cluster) -> None:
    see(
        cluster,
        neuron_node(),
        pod("a", node_name="inf-1", resource=DEVICE, units=2),
        pod("b", node_name="inf-1", resource=CORE, units=3, workload=""),
    )

    assert free(cluster) == {DEVICE: 2, "aws.amazon.com/neurondevice": 2, CORE: 5}
    leases = GpuLease.objects.order_by("pod_name").values_list("pod_name", "share_ppm")
    assert list(leases) == [("a", 2_000_000), ("b", 1_500_000)]
    assert fits(cluster, replicas=3) == Fit(
        ok=False,
        reason="2 of 3 fit now: not enough Neuron devices (2 of 6 Neuron devices free on 1 node).",
        short_of=("GPU",),
    )


def test_more_devices_than_a_node_has_never_fit(cluster: Cluster) -> None:
    see(cluster, neuron_node())

    assert fits(cluster, gpus=8) == Fit(
        ok=False,
        reason="A inf2.24xlarge node has 6 Neuron devices, and a replica requests 8 Neuron devices.",
        short_of=("GPU",),
        is_possible=False,
    )
    assert fits(cluster, gpu_resource="nvidia.com/gpu").reason == (
        "No inf2.24xlarge node offers nvidia.com/gpu."
    )


@pytest.mark.usefixtures("catalogue")
def test_without_nodes_the_price_list_knows_how_many_devices_a_type_has(cluster: Cluster) -> None:
    assert fits(cluster, instance_types=("inf2.xlarge",), gpus=2).reason == (
        "A inf2.xlarge node has 1 Neuron device, and a replica requests 2 Neuron devices."
    )
    assert fits(cluster, instance_types=("inf2.xlarge",)).reason == (
        "There is no inf2.xlarge node in the cluster now."
    )


def pools(*requirements: KarpenterRequirement, **fields: Any) -> NodePool:
    return NodePool("inferentia", requirements, **fields)


@pytest.mark.usefixtures("catalogue")
def test_a_pool_of_inf2_starts_devices(cluster: Cluster) -> None:
    family = KarpenterRequirement("karpenter.k8s.aws/instance-family", "In", ("inf2",))
    offered = Capabilities(
        features={"karpenter": Feature(is_there=True)}, node_pools=(pools(family),)
    )
    Cluster.objects.filter(pk=cluster.pk).update(capabilities=offered.to_json(), region="us-east-1")

    started = capacity.list_shares(cluster_id=cluster.pk)

    assert [(s.instance_type, s.gpu_name, s.gpu_resource, s.gpus) for s in started] == [
        ("inf2.xlarge", "Inferentia2", DEVICE, 1),
        ("inf2.24xlarge", "Inferentia2", DEVICE, 2),
        ("inf2.24xlarge", "Inferentia2", DEVICE, 4),
        ("inf2.48xlarge", "Inferentia2", DEVICE, 8),
    ]


def test_the_limit_of_a_pool_on_devices_is_not_that_on_gpus() -> None:
    [pool] = node_pools.parse_pools(
        [
            {
                "metadata": {"name": "inferentia"},
                "spec": {"limits": {DEVICE: "6"}},
                "status": {"resources": {DEVICE: "4"}},
            }
        ]
    )
    assert NodePool.from_json(pool.to_json()) == pool

    def start(gpus: int, resource: str) -> str:
        return node_pools.check_start(
            [pool],
            instance_type="inf2.24xlarge",
            gpus=gpus,
            resource=resource,
        ).message

    assert start(3, DEVICE) == (
        "Node pool inferentia is limited to 6 Neuron devices and has 4; 3 more are needed."
    )
    assert start(3, "nvidia.com/gpu").startswith("Node pool inferentia will start")


def test_a_cluster_offers_devices_once_though_they_have_three_names() -> None:
    [offer] = gpu_offers([neuron_node()])

    assert (offer.resource, offer.product, offer.memory_mib) == (DEVICE, "Inferentia2", 32768)


@pytest.mark.usefixtures("catalogue", "detector")
def test_the_ledger_charges_each_device(cluster: Cluster) -> None:
    with time_machine.travel(START + timedelta(hours=2), tick=False):
        see(cluster, neuron_node(), pod(node_name="inf-1", resource=DEVICE, units=2))
        Cluster.objects.update(last_seen_at=START + timedelta(hours=2))
        ledger.seal_due()

    rows = LedgerRow.objects.filter(hour=START).order_by("kind")
    assert [(row.kind, row.team_slug, row.cost_amount) for row in rows] == [
        ("allocated", "vision", Decimal("2.163543")),
        ("idle", "", Decimal("4.327087")),
    ]


def opened(client: Client, node: Node) -> Any:
    return page(client.get(f"/fleet/nodes/{node.pk}"))


@pytest.mark.usefixtures("catalogue")
def test_pages_say_device_where_it_is_none_of_a_gpu(cluster: Cluster, client: Client) -> None:
    see(cluster, neuron_node())
    client.force_login(User.objects.create_user("ada", is_platform_admin=True))

    own = opened(client, Node.objects.get())
    fleet = page(client.get("/fleet"))

    assert own.term("Neuron devices") == "6 \N{MULTIPLICATION SIGN} Inferentia2, 32 GiB each"
    assert own.term("Sharing") == "Whole devices, 2 NeuronCores each"
    assert "MIG layout" not in own.text
    assert "GPU errors" not in own.text
    assert "6 of 6 \N{MULTIPLICATION SIGN} Inferentia2 free" in fleet.text
    assert fleet.term("GPUs and Neuron devices allocated").startswith("0 of 6")


@pytest.mark.usefixtures("detector")
def test_who_holds_a_device_is_on_its_tile(cluster: Cluster) -> None:
    see(cluster, neuron_node(devices=2), pod(node_name="inf-1", resource=DEVICE, units=1))
    admin = User.objects.create_user("ada", is_platform_admin=True)

    [view] = overview.list_nodes(actor=admin, ids=[Node.objects.get().pk])

    held: Sequence[bool] = [tile.is_free for tile in view.tiles]
    assert held == [False, True]
