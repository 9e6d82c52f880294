"""Who holds a claimed GPU: in leases and in the ledger exactly once, whoever claimed it and in which order it is seen."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from itertools import permutations
from typing import Any

import pytest
import time_machine

from fleet.costs.services import ledger
from fleet.models import Cluster, DeviceClaim, DeviceSlice, GpuLease, LedgerRow, Node, Pod
from fleet.observation.services import record, sweep
from fleet.observation.services.record import DeviceChanges, FullListing, ObservedChanges
from tests.fleet.dra_nodes import (
    claim,
    claiming_pod,
    dra_node,
    gpu,
    mig,
    resource_slice,
)
from tests.fleet.fakes import FakeKube
from tests.fleet.objects import GPU, START, node, pod

pytestmark = pytest.mark.django_db
WHOLE = 1_000_000
SLICES = resource_slice("dra-1", gpu(0), gpu(1), mig(2, "1g.10gb", "9856Mi"))
MINE = claiming_pod("mine", workload="detector-r1", claimed="nvidia.com_gpu.1")
# Of no workload, with the device of another team's claim.
THEIRS = claiming_pod("theirs", namespace="lab")
CLAIMS = [
    claim("mine-gpus", "gpu-0", pods=("mine",)),
    claim("theirs-gpus", "gpu-1", pods=("theirs",), namespace="lab"),
]


def sweep_at(minutes: float) -> None:
    with time_machine.travel(START + timedelta(minutes=minutes), tick=False):
        sweep.observe_due()


def watched(cluster: Cluster, *, minutes: float = 0, **changes: Any) -> None:
    at = START + timedelta(minutes=minutes)
    if changes.keys() & {"nodes", "pods", "deleted_pods"}:
        record.record(cluster_id=cluster.pk, changes=ObservedChanges(**changes), at=at)
    else:
        record.record_devices(cluster_id=cluster.pk, changes=DeviceChanges(**changes), at=at)


def shares() -> dict[str, int]:
    return dict(GpuLease.objects.filter(ended_at=None).values_list("pod_name", "share_ppm"))


def test_a_node_of_a_driver_alone_has_its_gpus(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    kube.put(dra_node(), SLICES, MINE, THEIRS, *CLAIMS)

    sweep_at(0)

    row = Node.objects.get()
    assert (row.gpu_count, row.gpu_product, row.gpu_memory_mib) == (
        3,
        "NVIDIA A100-SXM4-80GB",
        81920,
    )
    assert shares() == {"mine": WHOLE, "theirs": WHOLE}
    assert GpuLease.objects.get(pod_name="mine").team_slug == "vision"
    assert GpuLease.objects.get(pod_name="theirs").team_slug == ""
    assert Cluster.objects.get().devices_read_at == START


@pytest.mark.parametrize("order", list(permutations(("nodes", "slices", "pods", "claims"))))
def test_the_order_in_which_it_is_seen_changes_nothing(
    cluster: Cluster, detector: int, order: tuple[str, ...]
) -> None:
    seen: dict[str, Any] = {
        "nodes": [dra_node()],
        "slices": [SLICES],
        "pods": [MINE, THEIRS],
        "claims": CLAIMS,
    }

    for kind in order:
        watched(cluster, minutes=0, **{kind: seen[kind]})
    # What came before its node is found by the next listing.
    record.replace_devices(
        cluster_id=cluster.pk,
        slices=FullListing([SLICES], 1),
        claims=FullListing(CLAIMS, 1),
        at=START,
    )

    assert shares() == {"mine": WHOLE, "theirs": WHOLE}
    held = Pod.objects.order_by("name").values_list("gpu_resource", "gpu_units")
    assert list(held) == [(GPU, 1), (GPU, 1)]


def test_an_hour_is_charged_once_and_sums_to_the_node(
    kube: FakeKube, cluster: Cluster, detector: int, catalogue: None
) -> None:
    slice_pod = claiming_pod("slice", namespace="lab")
    slice_claim = claim(
        "slice-gpus", "gpu-2-mig-1g10gb-0", pods=("slice",), namespace="lab", version=1
    )
    kube.put(dra_node(), SLICES, MINE, THEIRS, slice_pod, *CLAIMS, slice_claim)
    sweep_at(0)
    sweep_at(70)

    with time_machine.travel(START + timedelta(minutes=70), tick=False):
        ledger.seal_due()

    rows = LedgerRow.objects.all()
    hour = 3_600_000
    held = {(row.namespace, row.workload_name): row.gpu_milliseconds for row in rows}
    assert held == {
        ("vision", "detector-r1"): hour,
        ("lab", "theirs"): hour,
        # One of eight memory slices.
        ("lab", "slice"): hour // 8,
        ("", ""): 3 * hour - 2 * hour - hour // 8,
    }
    price = rows[0].usd_per_hour_amount
    assert price == Decimal("27.447050")
    assert sum(row.cost_amount for row in rows) == price


def test_a_claim_that_pods_share_has_one_holder_after_the_other(
    cluster: Cluster, detector: int
) -> None:
    watched(cluster, nodes=[dra_node()])
    watched(cluster, slices=[SLICES])
    watched(cluster, pods=[claiming_pod("first"), claiming_pod("second")])
    watched(cluster, claims=[claim("shared", "gpu-0", pods=("first", "second"))])
    assert shares() == {"first": WHOLE}

    ended = claiming_pod(
        "first", phase="Succeeded", finished=START + timedelta(minutes=5), version=2
    )
    watched(cluster, minutes=6, pods=[ended])
    watched(cluster, minutes=7, claims=[claim("shared", "gpu-0", pods=("second",), version=2)])

    spans = {lease.pod_name: (lease.started_at, lease.ended_at) for lease in GpuLease.objects.all()}
    assert spans == {
        "first": (START, START + timedelta(minutes=5)),
        "second": (START + timedelta(minutes=7), None),
    }


def test_a_gpu_of_plugin_and_one_of_a_claim_are_two(cluster: Cluster, detector: int) -> None:
    both = claiming_pod("both", units=1)
    watched(cluster, nodes=[node("dra-1", gpus=4)])
    watched(cluster, slices=[resource_slice("dra-1", gpu(0), gpu(1), gpu(2), gpu(3))])
    watched(cluster, claims=[claim("c", "gpu-0", pods=("both",))])

    watched(cluster, pods=[both])

    assert shares() == {"both": 2 * WHOLE}
    assert Node.objects.get().gpu_count == 4


def test_a_resource_that_the_scheduler_made_a_claim_of_is_counted_once(
    cluster: Cluster, detector: int
) -> None:
    extended = pod("extended", workload="", node_name="dra-1", units=2)
    extended["status"]["extendedResourceClaimStatus"] = {"resourceClaimName": "x"}
    watched(cluster, nodes=[dra_node()])
    watched(cluster, slices=[SLICES])
    watched(cluster, pods=[extended])
    assert shares() == {"extended": 2 * WHOLE}

    watched(cluster, claims=[claim("x", "gpu-0", "gpu-1", pods=("extended",))])

    assert shares() == {"extended": 2 * WHOLE}
    assert Pod.objects.values_list("gpu_resource", "gpu_units").get() == (GPU, 2)


def test_claims_of_a_pod_that_are_seen_one_by_one_add_up(cluster: Cluster, detector: int) -> None:
    watched(cluster, nodes=[dra_node()])
    watched(cluster, slices=[SLICES])
    watched(cluster, pods=[claiming_pod("two")])

    watched(cluster, claims=[claim("a", "gpu-0", pods=("two",))])
    assert shares() == {"two": WHOLE}
    watched(cluster, claims=[claim("b", "gpu-2-mig-1g10gb-0", pods=("two",))])

    assert shares() == {"two": WHOLE + WHOLE // 8}


def test_a_part_of_a_device_is_the_part_of_its_memory(cluster: Cluster, detector: int) -> None:
    watched(cluster, nodes=[dra_node()])
    watched(cluster, slices=[SLICES])
    watched(cluster, pods=[claiming_pod("half")])

    part: dict[str, Any] = {"consumedCapacity": {"memory": "40Gi"}}
    watched(cluster, claims=[claim("c", "gpu-0", pods=("half",), **part)])

    assert shares() == {"half": WHOLE // 2}


def test_a_lease_ends_with_its_pod_though_its_claim_is_gone_before(
    cluster: Cluster, detector: int
) -> None:
    watched(cluster, nodes=[dra_node()])
    watched(cluster, slices=[SLICES])
    watched(cluster, pods=[THEIRS])
    watched(cluster, claims=CLAIMS)

    watched(cluster, minutes=3, deleted_claims=[CLAIMS[1]])
    assert shares() == {"theirs": WHOLE}
    watched(cluster, minutes=4, deleted_pods=[THEIRS])

    assert shares() == {}
    assert GpuLease.objects.get(pod_name="theirs").ended_at == START + timedelta(minutes=4)
    assert [row.name for row in DeviceClaim.objects.all()] == ["mine-gpus"]


def test_a_claim_that_is_no_longer_allocated_holds_nothing(cluster: Cluster) -> None:
    watched(cluster, claims=CLAIMS)

    watched(cluster, claims=[claim("mine-gpus", version=2)])

    assert [row.name for row in DeviceClaim.objects.all()] == ["theirs-gpus"]


def test_an_older_event_changes_nothing(cluster: Cluster) -> None:
    watched(cluster, claims=[claim("c", "gpu-1", pods=("b",), version=5)])
    watched(cluster, slices=[resource_slice("dra-1", gpu(0), gpu(1), version=5)])

    watched(cluster, claims=[claim("c", "gpu-0", pods=("a",), version=4)])
    watched(cluster, slices=[resource_slice("dra-1", gpu(0), version=4)])

    assert DeviceClaim.objects.get().pod_uid == "uid-b"
    assert len(DeviceSlice.objects.get().devices) == 2


def test_a_driver_that_restarts_takes_no_gpu_off_its_node(
    kube: FakeKube, cluster: Cluster, detector: int
) -> None:
    kube.put(dra_node(), SLICES, MINE, *CLAIMS)
    sweep_at(0)
    kube.remove("ResourceSlice", "", SLICES["metadata"]["name"])

    sweep_at(1)

    row = Node.objects.get()
    assert (row.gpu_count, DeviceSlice.objects.count()) == (3, 0)
    assert not any(device["is_healthy"] for device in row.claimable["devices"])
    assert shares() == {"mine": WHOLE}
    kube.put(SLICES)
    sweep_at(2)
    assert all(device["is_healthy"] for device in Node.objects.get().claimable["devices"])


@pytest.mark.parametrize("plural", ["resourceslices", "resourceclaims"])
def test_without_permission_everything_else_is_observed(
    kube: FakeKube, cluster: Cluster, detector: int, plural: str
) -> None:
    kube.put(dra_node(), SLICES, MINE, *CLAIMS)
    sweep_at(0)
    kube.forbidden = {plural}

    sweep_at(1)

    row = Cluster.objects.get()
    assert (row.devices_read_at, row.is_reachable) == (None, True)
    assert row.last_seen_at == START + timedelta(minutes=1)
    assert shares() == {"mine": WHOLE}
    assert Node.objects.get().gpu_count == 3


def test_the_label_counts_until_the_claim_is_known(cluster: Cluster, detector: int) -> None:
    watched(cluster, nodes=[node("dra-1", gpus=4)])

    watched(cluster, pods=[MINE])

    assert shares() == {"mine": WHOLE}
    watched(cluster, slices=[SLICES])
    watched(cluster, claims=CLAIMS)
    assert shares() == {"mine": WHOLE}
