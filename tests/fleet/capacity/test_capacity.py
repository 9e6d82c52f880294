from __future__ import annotations

from decimal import Decimal

import pytest

from fleet.domain.overview import Holder
from fleet.models import Cluster
from fleet.selectors import capacity, overview
from fleet.selectors.overview import pack
from fleet.services import observation
from fleet.services.observation import Seen
from portal.accounts.policy import SYSTEM
from tests.fleet.objects import START, node, pod

GPU = "nvidia.com/gpu"
pytestmark = pytest.mark.django_db


def see(cluster: Cluster, *items: dict[str, object]) -> None:
    seen = Seen(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    observation.record(cluster_id=cluster.pk, seen=seen, at=START)


def fit(cluster: Cluster, *, gpus: int = 1, replicas: int = 1, resource: str = GPU) -> capacity.Fit:
    return capacity.fits_now(
        cluster_id=cluster.pk,
        instance_type="g5.xlarge",
        gpu_resource=resource,
        gpus=gpus,
        replicas=replicas,
    )


def test_replicas_fit_while_gpus_are_free(cluster: Cluster, detector: int) -> None:
    see(cluster, node("a"), node("b"), pod(node_name="a"))

    assert fit(cluster) == capacity.Fit(ok=True, reason="1 of this size fit on free GPUs now.")
    assert fit(cluster, replicas=2) == capacity.Fit(
        ok=False, reason="1 of 2 fit now: 1 of 2 nvidia.com/gpu are free on 2 nodes."
    )


def test_replica_never_spans_two_nodes(cluster: Cluster) -> None:
    see(cluster, node("a"), node("b"))

    assert fit(cluster, gpus=2) == capacity.Fit(
        ok=False, reason="One g5.xlarge has 1 nvidia.com/gpu; a replica asks for 2."
    )


def test_reason_names_what_is_missing(cluster: Cluster) -> None:
    assert fit(cluster).reason == "There is no g5.xlarge node in the cluster now."
    see(cluster, node("a"))
    assert fit(cluster, resource="nvidia.com/mig-1g.10gb").reason == (
        "No g5.xlarge node offers nvidia.com/mig-1g.10gb."
    )


def test_node_that_is_not_ready_gives_nothing(cluster: Cluster) -> None:
    see(cluster, node("a", is_ready=False))

    found = fit(cluster)

    assert not found.ok
    assert "1 of 1 nodes are not ready or cordoned" in found.reason


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


def holder(name: str, ppm: int) -> Holder:
    return Holder(label=name, share_ppm=ppm, is_visible=True)


def test_holders_are_laid_onto_gpus_without_overlap() -> None:
    tiles = pack([holder("slice", 500_000), holder("two", 2_000_000), holder("half", 500_000)], 4)

    assert [[one.label for one in tile.holders] for tile in tiles] == [
        ["two"],
        ["two"],
        ["slice", "half"],
        [],
    ]
    assert [tile.free_ppm for tile in tiles] == [0, 0, 0, 1_000_000]


def test_more_held_than_there_is_still_shows(cluster: Cluster) -> None:
    tiles = pack([holder("a", 1_000_000), holder("b", 1_000_000)], 1)

    assert [one.label for one in tiles[0].holders] == ["a", "b"]
    assert tiles[0].free_ppm == 0


@pytest.mark.usefixtures("catalogue", "detector")
def test_overview_counts_idle_dollars_and_pending_pods(cluster: Cluster) -> None:
    waiting = pod("waits", node_name="", scheduled=None, phase="Pending")
    see(cluster, node("a"), node("b"), pod(node_name="a"), waiting)

    found = overview.fleet_overview(actor=SYSTEM)

    assert [view.name for view in found.nodes] == ["b", "a"]
    assert (found.gpus, found.held_gpus) == (2, Decimal(1))
    assert found.idle_usd_per_hour_amount == Decimal("1.006")
    assert found.utilisation is None
    assert [(one.name, one.reason) for one in found.pending] == [("waits", "Unschedulable")]
