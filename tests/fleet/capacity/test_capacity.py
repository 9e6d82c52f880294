from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.capacity.domain.overview import GpuHolder
from fleet.capacity.domain.tiles import place_holders
from fleet.capacity.selectors import capacity, node_spaces, overview
from fleet.clusters.domain.capabilities import Capabilities, Feature
from fleet.clusters.domain.node_pools import KarpenterRequirement, NodePool
from fleet.gpus.domain import offers
from fleet.models import Cluster, InstancePrice
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from portal.accounts.policy import SYSTEM
from tests.fleet.dra_nodes import dra_node, gpu, resource_slice
from tests.fleet.objects import START, node, pod

GPU = "nvidia.com/gpu"
pytestmark = pytest.mark.django_db


def see(cluster: Cluster, *items: dict[str, object]) -> None:
    changes = ObservedChanges(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)


@pytest.mark.usefixtures("catalogue")
def test_price_of_a_slice_is_its_part_of_the_node(cluster: Cluster) -> None:
    see(
        cluster,
        node(
            "mig",
            instance_type="p4de.24xlarge",
            gpus=8,
            labels={"nvidia.com/gpu.memory": "81920"},
            allocatable={"nvidia.com/mig-1g.10gb": "56"},
        ),
    )

    (share,) = capacity.list_shares(cluster_id=cluster.pk)

    # One of eight memory slices of one of eight GPUs of $27.44705 an hour.
    assert share.usd_per_hour_amount == Decimal("0.428860")
    assert (share.gpus, share.vram_mib, share.free_now) == (1, 10240, 56)


def test_unpriced_node_has_a_share_of_unknown_price(cluster: Cluster) -> None:
    see(cluster, node("odd", instance_type="x1.mystery"))

    (share,) = capacity.list_shares(cluster_id=cluster.pk)

    assert (share.usd_per_hour_amount, share.price_date) == (None, None)


def priced(instance_type: str, capacity_type: str, usd: str) -> None:
    known = InstancePrice.objects.get(instance_type=instance_type, capacity_type="on-demand")
    known.pk, known.capacity_type, known.usd_per_hour_amount = None, capacity_type, Decimal(usd)
    known.save()


SPOT = {"karpenter.sh/capacity-type": "spot"}


@pytest.mark.usefixtures("catalogue")
def test_spot_and_on_demand_nodes_of_one_type_have_shares_of_their_own(cluster: Cluster) -> None:
    priced("g5.xlarge", "spot", "0.402")
    see(cluster, node("a"), node("b", labels=SPOT), node("c", labels=SPOT))

    shares = capacity.list_shares(cluster_id=cluster.pk)

    assert [(s.capacity_type, s.usd_per_hour_amount, s.nodes) for s in shares] == [
        ("spot", Decimal("0.402000"), 2),
        ("on-demand", Decimal("1.006000"), 1),
    ]


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(
    ("requested", "spot_price", "price", "nodes"),
    [
        ("on-demand", None, "1.006000", 1),
        # Never the price of another capacity.
        ("spot", None, None, 2),
        ("spot", "0.402", "0.402000", 2),
        # Either may come, so the dearer one bounds it.
        ("any", "0.402", "1.006000", 3),
    ],
)
def test_request_is_priced_as_its_capacity_type(
    cluster: Cluster, requested: str, spot_price: str | None, price: str | None, nodes: int
) -> None:
    if spot_price:
        priced("g5.xlarge", "spot", spot_price)
    see(cluster, node("a"), node("b", labels=SPOT), node("c", labels=SPOT))

    listed = capacity.list_shares(cluster_id=cluster.pk)
    (share,) = capacity.for_capacity(listed, requested)

    assert share.usd_per_hour_amount == (None if price is None else Decimal(price))
    assert share.nodes == nodes


@pytest.mark.usefixtures("catalogue")
def test_spot_price_counts_before_there_is_a_spot_node(cluster: Cluster) -> None:
    see(cluster, node("a"))
    listed = capacity.list_shares(cluster_id=cluster.pk)
    (unknown,) = capacity.for_capacity(listed, "spot")
    priced("g5.xlarge", "spot", "0.402")
    (known,) = capacity.for_capacity(capacity.list_shares(cluster_id=cluster.pk), "spot")

    assert (unknown.usd_per_hour_amount, unknown.nodes, unknown.vram_mib) == (None, 0, 22888)
    assert (known.usd_per_hour_amount, known.nodes, known.free_now) == (Decimal("0.402000"), 0, 0)


@pytest.mark.usefixtures("catalogue")
def test_shares_of_one_type_are_those_of_all_types(cluster: Cluster) -> None:
    """Nodes of other types say what could be started, and of equal GPUs only the cheapest is."""
    priced("g5.xlarge", "spot", "0.402")
    mig = {"nvidia.com/mig-1g.10gb": "56", "nvidia.com/gpu": "0"}
    see(
        cluster,
        node("a"),
        node("b", instance_type="p4de.24xlarge", gpus=8, allocatable=mig),
        node("c", instance_type="g4dn.12xlarge", gpus=4, is_ready=False),
        pod("p", node_name="a"),
    )
    any_instance = NodePool(
        "any", (KarpenterRequirement("karpenter.sh/capacity-type", "In", ("spot",)),)
    )
    offered = Capabilities(
        features={"karpenter": Feature(is_there=True)}, node_pools=(any_instance,)
    )
    Cluster.objects.filter(pk=cluster.pk).update(capabilities=offered.to_json())

    shares = capacity.list_shares(cluster_id=cluster.pk)

    types = {share.instance_type for share in shares}
    assert {"g5.xlarge", "p4de.24xlarge", "g4dn.12xlarge"} < types
    for name in types | {"x1.mystery"}:
        of_type = [share for share in shares if share.instance_type == name]
        assert capacity.list_shares(cluster_id=cluster.pk, instance_types=[name]) == of_type, name


@pytest.mark.usefixtures("catalogue")
def test_single_gpus_are_those_of_all_shares_and_read_one_node_of_many(cluster: Cluster) -> None:
    """Whatever runs on the nodes; with those that may be claimed, and without the unready ones' and Neuron."""
    mig = {"nvidia.com/mig-1g.10gb": "56", "nvidia.com/gpu": "0"}
    see(
        cluster,
        *(node(f"alike-{n}") for n in range(5)),
        *(pod(f"p{n}", node_name=f"alike-{n}") for n in range(5)),
        node("b", instance_type="p4de.24xlarge", gpus=8, allocatable=mig),
        node("c", instance_type="g4dn.12xlarge", gpus=4, is_ready=False),
        node("d", instance_type="inf2.xlarge", gpus=0, allocatable={"aws.amazon.com/neuron": "1"}),
        dra_node(),
    )
    record.replace_devices(
        cluster_id=cluster.pk,
        slices=FullListing([resource_slice("dra-1", gpu(0), version=1)], 1),
        claims=FullListing([], 1),
        at=START,
    )
    shares = capacity.list_shares(cluster_id=cluster.pk)

    single = capacity.list_single_gpus(cluster_id=cluster.pk)

    expected = [
        (*share.size[:2], share.is_claimed, share.gpu_name)
        for share in offers.drop_neuron(shares)
        if share.gpus == 1
    ]
    sizes = {one[:3] for one in single}
    assert single == list(dict.fromkeys(expected))
    assert {
        ("g5.xlarge", GPU, False),
        ("p4de.24xlarge", "nvidia.com/mig-1g.10gb", False),
    } <= sizes
    assert len(sizes) == len(single)
    assert [one.is_claimed for one in single].count(True) == 1
    assert len(node_spaces.one_of_each(cluster.pk)) == 5


def holder(name: str, ppm: int) -> GpuHolder:
    return GpuHolder(label=name, share_ppm=ppm, is_visible=True)


def test_holders_are_laid_onto_gpus_without_overlap() -> None:
    tiles = place_holders(
        [holder("slice", 500_000), holder("two", 2_000_000), holder("half", 500_000)], 4
    )

    assert [[one.label for one in tile.holders] for tile in tiles] == [
        ["two"],
        ["two"],
        ["slice", "half"],
        [],
    ]
    assert [tile.free_ppm for tile in tiles] == [0, 0, 0, 1_000_000]


def test_more_held_than_there_is_still_shows(cluster: Cluster) -> None:
    tiles = place_holders([holder("a", 1_000_000), holder("b", 1_000_000)], 1)

    assert [one.label for one in tiles[0].holders] == ["a", "b"]
    assert tiles[0].free_ppm == 0


@pytest.mark.usefixtures("catalogue", "detector")
def test_overview_counts_idle_dollars_and_pending_pods(cluster: Cluster) -> None:
    waiting = pod("waits", node_name="", scheduled=None, phase="Pending")
    see(cluster, node("a"), node("b"), pod(node_name="a"), waiting)

    shown = overview.fleet_overview(actor=SYSTEM)

    assert [view.name for view in shown.nodes] == ["b", "a"]
    assert (shown.gpus, shown.allocated_gpus) == (2, Decimal(1))
    assert shown.idle_usd_per_hour_amount == Decimal("1.006")
    assert shown.utilisation is None
    assert [(one.name, one.reason) for one in shown.pending] == [("waits", "Unschedulable")]
