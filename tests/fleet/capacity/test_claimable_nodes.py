"""Nodes whose GPUs are claimed: what fits, what it costs, and who holds which device on the pages and in REST."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.capacity.selectors import capacity, fit, node_spaces
from fleet.capacity.selectors.fit import Fit, ReplicaSize
from fleet.gpus.domain import devices, offers
from fleet.models import Cluster, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from portal.accounts.models import Team, User
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.dra_nodes import PRODUCT, claim, claiming_pod, dra_node, gpu, mig, resource_slice
from tests.fleet.objects import GPU, START
from tests.page import page

pytestmark = pytest.mark.django_db
SLICE = "nvidia.com/mig-1g.10gb"
SLICES = resource_slice("dra-1", gpu(0), gpu(1), gpu(2, "40Gi"), mig(3, "1g.10gb", "9856Mi"))


@pytest.fixture(autouse=True)
def fleet(cluster: Cluster, detector: int) -> None:
    """gpu-0 is held by a deployment of vision, gpu-1 by a pod of nobody."""
    see(
        cluster,
        dra_node(),
        claiming_pod("detector-r1-abc", workload="detector-r1", claimed="nvidia.com_gpu.1"),
        claiming_pod("theirs", namespace="lab"),
        slices=[SLICES],
        claims=[
            claim("detector-gpus", "gpu-0", pods=("detector-r1-abc",)),
            claim("theirs-gpus", "gpu-1", pods=("theirs",), namespace="lab"),
        ],
    )


def see(
    cluster: Cluster, *items: dict[str, Any], slices: list[Any], claims: list[Any], version: int = 1
) -> None:
    changes = ObservedChanges(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)
    record.replace_devices(
        cluster_id=cluster.pk,
        slices=FullListing(slices, version),
        claims=FullListing(claims, version),
        at=START,
    )


def fits(cluster: Cluster, *, replicas: int = 1, resource: str = GPU, **selected: Any) -> Fit:
    gpus = selected.pop("gpus", 1)
    size = ReplicaSize(
        ("p4de.24xlarge",), resource, gpus, claim=devices.request_of(resource, **selected)
    )
    return fit.fits_now(node_spaces.list_spaces(cluster.pk), size=size, replicas=replicas)


def test_what_is_claimed_is_not_free(cluster: Cluster) -> None:
    assert fits(cluster) == Fit(ok=True, reason="1 of this size fits now.")
    assert fits(cluster, replicas=2) == Fit(
        ok=False,
        reason="1 of 2 fit now: not enough GPU (1 of 3 GPUs free on 1 node).",
        short_of=("GPU",),
    )
    assert fits(cluster, resource=SLICE).ok


def test_what_a_claim_selects_decides(cluster: Cluster) -> None:
    assert not fits(cluster, memory_gib=80).ok
    assert fits(cluster, memory_gib=40, product=PRODUCT).ok
    assert fits(cluster, product="NVIDIA H100", memory_gib=80) == Fit(
        ok=False,
        reason="No p4de.24xlarge node offers a GPU of NVIDIA H100 with 80 GiB for claims.",
        short_of=("GPU",),
    )
    never = fits(cluster, gpus=4)
    assert never.reason == "A p4de.24xlarge node has 3 GPUs, and a replica requests 4 GPUs."
    assert not never.is_possible


def test_a_cordoned_node_has_no_free_device(cluster: Cluster) -> None:
    Node.objects.update(is_schedulable=False)

    assert fits(cluster).reason == "0 of 1 fit now; 1 of 1 node not ready or cordoned."


def test_without_a_claim_nothing_fits_there(cluster: Cluster) -> None:
    size = ReplicaSize(("p4de.24xlarge",), GPU, 1)

    verdict = fit.fits_now(node_spaces.list_spaces(cluster.pk), size=size, replicas=1)

    assert verdict.reason == "No p4de.24xlarge node offers nvidia.com/gpu."


@pytest.mark.usefixtures("catalogue")
def test_devices_are_offered_with_their_part_of_the_nodes_price(cluster: Cluster) -> None:
    listed = [s for s in capacity.list_shares(cluster_id=cluster.pk) if s.nodes]

    assert offers.filter_shares(listed, is_claimed=False) == []
    assert [(s.gpu_resource, s.gpus, s.free_now, s.vram_mib) for s in listed] == [
        (SLICE, 1, 1, 9856),
        # One of the three has 40 GiB, and a claim may get it.
        (GPU, 1, 1, 40960),
        (GPU, 2, 0, 81920),
    ]
    whole = listed[1].usd_per_hour_amount
    assert whole == (Decimal("27.44705") / 4).quantize(Decimal("0.000001"))
    assert listed[2].usd_per_hour_amount == Decimal("13.723525")


def reader(*teams: Team) -> User:
    user = make_user(username="ada")
    for team in teams:
        make_membership(user=user, team=team)
    return user


def signed_in(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@time_machine.travel(START, tick=False)
def test_the_nodes_page_says_who_holds_which_device(vision: Team) -> None:
    client = signed_in(reader(vision))
    shown = page(client.get(f"/fleet/nodes/{Node.objects.get().pk}"))

    rows = [row for row in shown.rows if "Device" in row]
    assert [(row["Device"], row["Memory"], row["State"]) for row in rows] == [
        ("gpu-0", "80 GiB", "held"),
        ("gpu-1", "80 GiB", "held"),
        ("gpu-2", "40 GiB", "free"),
        ("gpu-3-mig-1g10gb-0MIG 1g.10gb", "9.6 GiB", "free"),
    ]
    assert {row["Product"] for row in rows} == {PRODUCT}
    assert rows[0]["Held by"] == "detector vision/detector-r1-abc"
    assert rows[0]["Team"] == "vision"
    assert rows[1]["Held by"] == "theirs lab/theirs"
    assert shown.link("detector") == "/vision/deployments/detector"
    assert "4 \N{MULTIPLICATION SIGN} NVIDIA A100-SXM4-80GB, 80 GiB each" in shown.term("GPUs")
    assert shown.term("Sharing") == "Claimed individually (DRA)"
    assert "MIG layout" not in shown.text


@time_machine.travel(START, tick=False)
def test_another_teams_holder_has_no_name_on_page_and_in_rest(vision: Team) -> None:
    client = signed_in(reader(make_team(slug="nlp")))
    pk = Node.objects.get().pk

    html = client.get(f"/fleet/nodes/{pk}").content.decode()
    answer = client.get(f"/api/v1/nodes/{pk}")

    assert "detector" not in html + answer.content.decode()
    held, free = answer.json()["devices"][0], answer.json()["devices"][2]
    assert held["holders"] == [
        {
            "name": "other team",
            "is_visible": False,
            "team_slug": "",
            "namespace": "",
            "claim": "",
            "pod_name": "",
            "deployment": "",
        }
    ]
    assert (held["is_free"], free["is_free"], free["holders"]) == (False, True, [])
    assert answer.json()["sharing"] == "claimed"


@time_machine.travel(START, tick=False)
def test_what_cannot_be_read_is_not_called_free(cluster: Cluster, vision: Team) -> None:
    record.forget_devices(cluster_id=cluster.pk)
    client = signed_in(reader(vision))

    shown = page(client.get(f"/fleet/nodes/{Node.objects.get().pk}"))

    states = [row["State"] for row in shown.rows if "Device" in row]
    assert states == ["held", "held", "not known", "not known"]
    assert "the portal has no permission to list ResourceSlices and ResourceClaims" in shown.text


@time_machine.travel(START, tick=False)
def test_the_fleet_page_counts_claimed_gpus(vision: Team) -> None:
    shown = page(signed_in(reader(vision)).get("/fleet"))

    assert "2 of 4 \N{MULTIPLICATION SIGN} NVIDIA A100-SXM4-80GB free" in shown.text
    assert "detector" in shown.text
