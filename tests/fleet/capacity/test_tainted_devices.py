"""A GPU whose device is tainted is not free: on the map, on its node's page, in REST and in what fits."""

from __future__ import annotations

from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.capacity.selectors import capacity, fit, node_spaces, overview
from fleet.capacity.selectors.fit import ReplicaSize
from fleet.gpus.domain import devices
from fleet.gpus.domain.tolerations import Toleration
from fleet.models import Cluster, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from portal.accounts.models import User
from portal.accounts.policy import SYSTEM
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.dra_nodes import claim, claiming_pod, dra_node, gpu, mig, resource_slice
from tests.fleet.objects import GPU, START
from tests.page import page

pytestmark = pytest.mark.django_db
XID = {"key": "gpu.nvidia.com/xid", "value": "79", "effect": "NoExecute"}
SET_AT = "2026-01-01T00:00:00Z"


def observe(
    cluster: Cluster,
    *offered: dict[str, Any],
    claims: tuple[dict[str, Any], ...] = (),
    pods: tuple[dict[str, Any], ...] = (),
    version: int = 1,
    node: dict[str, Any] | None = None,
    **spec: Any,
) -> None:
    changes = ObservedChanges(nodes=[node or dra_node()], pods=list(pods))
    record.record(cluster_id=cluster.pk, changes=changes, at=START)
    record.replace_devices(
        cluster_id=cluster.pk,
        slices=FullListing([resource_slice("dra-1", *offered, version=version, **spec)], version),
        claims=FullListing(list(claims), version),
        at=START,
    )


def rule(name: str = "hot", effect: str = "NoSchedule", **selector: Any) -> dict[str, Any]:
    taint = {"key": "example.com/hot", "effect": effect, "timeAdded": SET_AT}
    spec = {"deviceSelector": selector, "taint": taint}
    return {"kind": "DeviceTaintRule", "metadata": {"name": name}, "spec": spec}


def tiles() -> list[tuple[int, int, int]]:
    """Of each GPU: the number of holders, what is free and what is tainted."""
    (view,) = overview.list_nodes(actor=SYSTEM, ids=[Node.objects.get().pk])
    return [(len(tile.holders), tile.free_ppm, tile.tainted_ppm) for tile in view.tiles]


def fitting(cluster: Cluster, resource: str = GPU, *tolerations: Toleration) -> int:
    size = ReplicaSize(
        ("p4de.24xlarge",),
        resource,
        1,
        claim=devices.request_of(resource),
        claim_tolerations=tolerations,
    )
    spaces = node_spaces.list_spaces(cluster.pk)
    return next(n for n in range(9) if not fit.fits_now(spaces, size=size, replicas=n + 1).ok)


def signed_in() -> Client:
    user: User = make_user(username="ada")
    make_membership(user=user, team=make_team(slug="nlp"))
    client = Client()
    client.force_login(user)
    return client


@time_machine.travel(START, tick=False)
def test_the_drivers_taint_takes_a_gpu_out_of_what_is_free(cluster: Cluster) -> None:
    observe(cluster, gpu(0), gpu(1, taints=[XID]), gpu(2))

    assert tiles() == [(0, 1_000_000, 0), (0, 1_000_000, 0), (0, 0, 1_000_000)]
    assert fitting(cluster) == 2
    whole = overview.fleet_overview(actor=SYSTEM)
    assert (whole.gpus, whole.allocated_gpus, whole.tainted_gpus) == (3, 0, 1)
    assert [node.free_gpus for node in whole.nodes] == [2]
    client = signed_in()
    html = client.get("/fleet").content.decode()
    assert (
        "2 of 3 \N{MULTIPLICATION SIGN} NVIDIA A100-SXM4-80GB free"
        in page(client.get("/fleet")).text
    )
    assert "Not offered: gpu-1: gpu.nvidia.com/xid=79:NoExecute by the driver" in html
    assert "2 free, 1 tainted" in page(client.get("/fleet")).text


@time_machine.travel(START, tick=False)
def test_the_nodes_page_and_rest_say_which_taint_and_why(cluster: Cluster) -> None:
    observe(cluster, gpu(0), gpu(1, taints=[XID]))
    record.record_taint_rules(cluster_id=cluster.pk, rules=[rule(pool="dra-1", device="gpu-0")])
    client, pk = signed_in(), Node.objects.get().pk

    rows = [row for row in page(client.get(f"/fleet/nodes/{pk}")).rows if "Device" in row]
    assert [row["State"] for row in rows] == [
        f"tainted example.com/hot:NoSchedule by DeviceTaintRule hot since {SET_AT}",
        "tainted gpu.nvidia.com/xid=79:NoExecute by the driver",
    ]
    answer = client.get(f"/api/v1/nodes/{pk}").json()
    (first, second) = answer["devices"]
    assert (first["is_free"], second["is_free"]) == (False, False)
    assert first["taints"] == [
        {
            "key": "example.com/hot",
            "value": "",
            "effect": "NoSchedule",
            "since": SET_AT,
            "rule": "hot",
        }
    ]
    assert [(g["free_ppm"], g["tainted_ppm"]) for g in answer["gpus"]] == [(0, 1_000_000)] * 2


def test_a_rule_takes_out_what_it_selects_until_it_is_gone(cluster: Cluster) -> None:
    observe(cluster, gpu(0), gpu(1))
    for selector, left in [
        ({}, 0),
        ({"driver": "gpu.nvidia.com", "device": "gpu-1"}, 1),
        ({"driver": "net.example.com"}, 2),
        ({"pool": "dra-2"}, 2),
        ({"deviceClassName": "mig.nvidia.com"}, 2),
        ({"deviceClassName": "gpu.nvidia.com"}, 0),
    ]:
        record.record_taint_rules(cluster_id=cluster.pk, rules=[rule(**selector)])
        assert (selector, fitting(cluster)) == (selector, left)
    record.record_taint_rules(cluster_id=cluster.pk, rules=[rule(effect="None")])
    assert fitting(cluster) == 2
    record.record_taint_rules(cluster_id=cluster.pk, rules=[rule()])
    record.record_taint_rules(cluster_id=cluster.pk, rules=[])

    assert fitting(cluster) == 2
    assert tiles() == [(0, 1_000_000, 0)] * 2


def test_a_rule_is_kept_for_devices_that_come_later(cluster: Cluster) -> None:
    observe(cluster, gpu(0))
    record.record_taint_rules(cluster_id=cluster.pk, rules=[rule(device="gpu-1")])
    observe(cluster, gpu(0), gpu(1), version=2)

    assert fitting(cluster) == 1
    assert tiles() == [(0, 1_000_000, 0), (0, 0, 1_000_000)]


def test_who_holds_a_tainted_gpu_goes_on_holding_it(cluster: Cluster, detector: int) -> None:
    observe(
        cluster,
        gpu(0, taints=[{**XID, "effect": "NoSchedule"}]),
        gpu(1),
        pods=(claiming_pod("detector-r1-abc", workload="detector-r1"),),
        claims=(claim("c", "gpu-0", pods=("detector-r1-abc",)),),
    )

    assert tiles() == [(1, 0, 0), (0, 1_000_000, 0)]
    assert overview.fleet_overview(actor=SYSTEM).tainted_gpus == 0


def test_a_gpu_that_the_device_plugin_offers_stays_free_for_it(cluster: Cluster) -> None:
    node = dra_node()
    node["status"]["allocatable"]["nvidia.com/gpu"] = "2"
    observe(cluster, gpu(0, taints=[XID]), gpu(1, taints=[XID]), node=node)

    assert Node.objects.get().gpu_count == 2
    assert tiles() == [(0, 1_000_000, 0)] * 2
    assert fitting(cluster) == 0


def test_of_a_cut_gpu_only_the_tainted_slices_are_out(cluster: Cluster) -> None:
    observe(
        cluster,
        mig(0, "3g.40gb", "40Gi", taints=[XID]),
        mig(0, "2g.20gb", "20Gi", 4),
        gpu(1),
    )

    # What no slice covers is offered by nobody.
    assert tiles() == [(0, 1_000_000, 0), (0, 250_000, 750_000)]
    assert fitting(cluster, "nvidia.com/mig-3g.40gb") == 0
    assert fitting(cluster, "nvidia.com/mig-2g.20gb") == 1


def test_a_driver_that_took_its_slices_away_has_nothing_free(cluster: Cluster) -> None:
    observe(cluster, gpu(0), gpu(1))
    record.replace_devices(
        cluster_id=cluster.pk, slices=FullListing([], 2), claims=FullListing([], 2), at=START
    )

    assert tiles() == [(0, 0, 1_000_000)] * 2
    (view,) = overview.list_nodes(actor=SYSTEM, ids=[Node.objects.get().pk])
    assert view.tiles[0].taint == "the driver took its ResourceSlices away"
    observe(cluster, gpu(0), gpu(1), version=3)
    assert tiles() == [(0, 1_000_000, 0)] * 2


def test_devices_without_attributes_are_no_gpus_and_break_nothing(cluster: Cluster) -> None:
    bare = {"name": "x", "taints": [XID]}
    empty_taint = gpu(0, taints=[{"effect": "NoSchedule"}, {}])
    observe(cluster, bare, empty_taint)

    assert Node.objects.get().gpu_count == 1
    assert tiles() == [(0, 0, 1_000_000)]


@time_machine.travel(START, tick=False)
@pytest.mark.parametrize(
    ("tolerations", "count"),
    [
        ([], 1),
        ([("gpu.nvidia.com/xid", "NoExecute", "79")], 2),
        ([("gpu.nvidia.com/xid", "NoExecute", None)], 2),
        ([("gpu.nvidia.com/xid", "NoExecute", "80")], 1),
        ([("gpu.nvidia.com/xid", "NoSchedule", "79")], 1),
        ([("other", "NoExecute", None)], 1),
        ([("example.com/hot", "NoSchedule", None)], 1),
        # Each taint of the third GPU by one of them.
        ([("gpu.nvidia.com/xid", "NoExecute", None), ("example.com/hot", "NoSchedule", "")], 3),
    ],
)
def test_what_fits_counts_devices_whose_taints_are_all_tolerated(
    cluster: Cluster, tolerations: list[tuple[str, str, str | None]], count: int
) -> None:
    observe(cluster, gpu(0), gpu(1, taints=[XID]), gpu(2, taints=[XID]))
    record.record_taint_rules(cluster_id=cluster.pk, rules=[rule(device="gpu-2")])

    assert fitting(cluster, GPU, *(Toleration(*one) for one in tolerations)) == count


@time_machine.travel(START, tick=False)
def test_a_tolerated_device_that_is_held_or_was_taken_away_is_not_free(cluster: Cluster) -> None:
    xid = Toleration("gpu.nvidia.com/xid", "NoExecute")
    observe(cluster, gpu(0, taints=[XID]), gpu(1, taints=[XID]), claims=(claim("x", "gpu-0"),))

    assert fitting(cluster, GPU, xid) == 1

    record.replace_devices(
        cluster_id=cluster.pk,
        slices=FullListing([], 2),
        claims=FullListing([claim("x", "gpu-0")], 2),
        at=START,
    )

    assert fitting(cluster, GPU, xid) == 0


@time_machine.travel(START, tick=False)
def test_a_type_of_which_all_devices_are_tainted_is_offered_without_a_free_one(
    cluster: Cluster,
) -> None:
    observe(cluster, gpu(0, taints=[XID]), gpu(1, taints=[XID]))

    shares = capacity.list_shares(cluster_id=cluster.pk)

    assert [(one.gpus, one.free_now, one.is_claimed) for one in shares] == [
        (1, 0, True),
        (2, 0, True),
    ]
