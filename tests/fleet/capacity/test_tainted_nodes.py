"""What a taint of a node takes from a team: it reads "4 free" only of GPUs that its pods get as they are."""

from __future__ import annotations

from typing import Any

import pytest
import time_machine
from django.test import Client

from fleet.capacity.selectors import capacity, fit, node_spaces
from fleet.capacity.selectors.fit import Fit, ReplicaSize
from fleet.clusters.domain.node_requirements import RequiredCapacity
from fleet.gpus.domain.offers import GpuShare
from fleet.gpus.domain.tolerations import Toleration, list_pod_tolerations
from fleet.models import Cluster, Node
from fleet.observation.services import record
from fleet.observation.services.record import FullListing, ObservedChanges
from portal.accounts.models import User
from tests.accounts import make_membership, make_team, make_user
from tests.fleet.dra_nodes import dra_node, gpu, resource_slice
from tests.fleet.objects import START, node, pod
from tests.page import page

GPU = "nvidia.com/gpu"
RESERVED = "reserved=batch:NoSchedule"
SPOT_TAINT = "karpenter.sh/capacity-type=spot:NoSchedule"
SPOT = {"karpenter.sh/capacity-type": "spot"}
BATCH = Toleration("reserved", "NoSchedule", "batch")
pytestmark = pytest.mark.django_db


def tainted(name: str, *taints: str, **fields: Any) -> dict[str, Any]:
    made = node(name, **fields)
    made["spec"]["taints"] = [taint_of(text) for text in taints]
    return made


def taint_of(text: str) -> dict[str, str]:
    named, _, effect = text.rpartition(":")
    key, _, value = named.partition("=")
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def see(cluster: Cluster, *items: dict[str, Any]) -> None:
    changes = ObservedChanges(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)


def fits(
    cluster: Cluster,
    *,
    replicas: int = 1,
    capacity_type: str = "any",
    tolerations: tuple[Toleration, ...] = (),
) -> Fit:
    size = ReplicaSize(
        instance_types=("g5.xlarge",),
        gpu_resource=GPU,
        gpus=1,
        requirements=() if capacity_type == "any" else (RequiredCapacity(capacity_type),),
        tolerations=(*list_pod_tolerations(GPU, capacity_type), *tolerations),
    )
    return fit.fits_now(node_spaces.list_spaces(cluster.pk), size=size, replicas=replicas)


def shares(cluster: Cluster, requested: str = "") -> list[GpuShare]:
    listed = [s for s in capacity.list_shares(cluster_id=cluster.pk) if s.nodes]
    return capacity.for_capacity(listed, requested) if requested else listed


def counts(cluster: Cluster, requested: str = "") -> list[tuple[int, int, tuple[str, ...]]]:
    return [(s.free_now, s.free_tainted, s.taints) for s in shares(cluster, requested)]


@pytest.mark.parametrize(
    "taint",
    [
        f"{GPU}=present:NoSchedule",
        f"{GPU}:NoSchedule",
        # It asks the scheduler, and keeps nothing away.
        "reserved=batch:PreferNoSchedule",
    ],
)
def test_a_taint_that_every_pod_tolerates_takes_nothing(cluster: Cluster, taint: str) -> None:
    see(cluster, tainted("a", taint))

    assert counts(cluster) == [(1, 0, ())]
    assert fits(cluster).ok


@pytest.mark.parametrize(
    "taint", [RESERVED, "reserved=batch:NoExecute", f"{GPU}=present:NoExecute"]
)
def test_a_node_for_others_has_nothing_free_for_an_ordinary_request(
    cluster: Cluster, taint: str
) -> None:
    see(cluster, tainted("a", f"{GPU}:NoSchedule", taint), node("b"), node("c"), pod(node_name="c"))

    assert counts(cluster) == [(1, 1, (taint,))]
    assert fits(cluster) == Fit(ok=True, reason="1 of this size fits now.")
    assert fits(cluster, replicas=2) == Fit(
        ok=False,
        reason="1 of 2 fit now: not enough GPU (1 of 2 GPUs free on 2 nodes); 1 of 3 nodes takes only pods that "
        f"tolerate {taint}.",
        short_of=("GPU",),
    )


def test_a_request_that_tolerates_the_taint_gets_the_node(cluster: Cluster) -> None:
    see(cluster, tainted("a", RESERVED), tainted("b", RESERVED, "gpu-test:NoSchedule"))

    assert fits(cluster) == Fit(
        ok=False,
        reason="No g5.xlarge node in the cluster takes these pods now: 2 of 2 nodes take only pods that tolerate "
        f"gpu-test:NoSchedule, {RESERVED}.",
        short_of=("taints",),
    )
    assert fits(cluster, tolerations=(BATCH,)).ok
    assert fits(cluster, tolerations=(BATCH,), replicas=2).reason == (
        "1 of 2 fit now: not enough GPU (1 of 1 GPU free on 1 node); 1 of 2 nodes takes only pods that tolerate "
        "gpu-test:NoSchedule."
    )
    any_value = Toleration("reserved", "NoSchedule")
    both = (any_value, Toleration("gpu-test", "NoSchedule"))
    assert fits(cluster, tolerations=both, replicas=2).ok
    other = (Toleration("reserved", "NoSchedule", "training"),)
    assert fits(cluster, tolerations=other).short_of == ("taints",)
    assert counts(cluster) == [(0, 2, ("gpu-test:NoSchedule", RESERVED))]


def test_taints_of_spot_nodes_are_tolerated_by_who_requests_spot(cluster: Cluster) -> None:
    see(cluster, tainted("a", SPOT_TAINT, labels=SPOT), node("b", labels=SPOT), node("c"))

    assert counts(cluster, "spot") == [(2, 0, ())]
    assert counts(cluster, "any") == [(2, 1, (SPOT_TAINT,))]
    assert counts(cluster, "on-demand") == [(1, 0, ())]
    assert fits(cluster, capacity_type="spot", replicas=2).ok
    assert fits(cluster, capacity_type="any", replicas=2).ok
    assert not fits(cluster, capacity_type="any", replicas=3).ok


def test_neuron_nodes_have_a_taint_of_their_own(cluster: Cluster) -> None:
    inf2 = {"aws.amazon.com/neuron": "1", "cpu": "4", "memory": "16Gi"}
    labels = {"nvidia.com/gpu.count": "0"}
    made = tainted("a", "aws.amazon.com/neuron:NoSchedule", allocatable=inf2, labels=labels)
    made["metadata"]["labels"]["node.kubernetes.io/instance-type"] = "inf2.xlarge"
    see(cluster, made)

    assert counts(cluster) == [(1, 0, ())]


@pytest.mark.parametrize(
    "taint",
    [
        "karpenter.sh/disrupted:NoSchedule",
        "node.kubernetes.io/disk-pressure:NoSchedule",
        "ebs.csi.aws.com/agent-not-ready:NoExecute",
    ],
)
def test_a_taint_of_what_happens_to_a_node_is_not_one_to_tolerate(
    cluster: Cluster, taint: str
) -> None:
    see(cluster, tainted("a", taint), tainted("b", RESERVED, taint), node("c"))

    assert counts(cluster) == [(1, 0, ())]
    assert fits(cluster, replicas=2).reason == (
        "1 of 2 fit now: not enough GPU (1 of 1 GPU free on 1 node); 2 of 3 nodes take no new pods now "
        f"({', '.join(sorted([taint, RESERVED]))})."
    )


def test_a_node_that_gives_nothing_anyway_is_not_one_for_others(cluster: Cluster) -> None:
    cordoned = tainted("a", "node.kubernetes.io/unschedulable:NoSchedule")
    cordoned["spec"]["unschedulable"] = True
    lost = tainted("b", "node.kubernetes.io/not-ready:NoSchedule", is_ready=False)
    see(cluster, cordoned, lost)

    assert counts(cluster) == []
    assert fits(cluster).reason == "0 of 1 fit now; 2 of 2 nodes not ready or cordoned."


@pytest.mark.parametrize("path", ["/fleet", "/fleet/nodes/{}"])
@time_machine.travel(START, tick=False)
def test_the_map_and_the_page_of_a_node_say_for_whom_it_is(cluster: Cluster, path: str) -> None:
    taints = (f"{GPU}:NoSchedule", SPOT_TAINT, RESERVED, "karpenter.sh/disrupted:NoSchedule")
    see(cluster, tainted("a", *taints, labels=SPOT))
    user: User = make_user(username="ada")
    make_membership(user=user, team=make_team(slug="nlp"))
    client = Client()
    client.force_login(user)

    shown = page(client.get(path.format(Node.objects.get().pk)))
    (row,) = client.get("/api/v1/nodes").json()["results"]

    assert f"only pods that tolerate {RESERVED}" in shown.text
    assert row["reserved_by"] == [RESERVED]


def test_claimed_devices_of_a_node_for_others_are_not_free_either(cluster: Cluster) -> None:
    made = dra_node()
    made["spec"]["taints"] = [taint_of(RESERVED)]
    see(cluster, made)
    slices = FullListing([resource_slice("dra-1", gpu(0), gpu(1))], 1)
    record.replace_devices(
        cluster_id=cluster.pk, slices=slices, claims=FullListing([], 1), at=START
    )

    (one, two) = (s for s in shares(cluster) if s.is_claimed)
    assert (one.gpus, one.free_now, one.free_tainted) == (1, 0, 2)
    assert (two.gpus, two.free_now, two.free_tainted) == (2, 0, 1)
