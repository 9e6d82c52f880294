from __future__ import annotations

from typing import Any

import pytest

from fleet.capacity.selectors import fit, node_spaces
from fleet.capacity.selectors.fit import Fit, ReplicaSize
from fleet.clusters.domain.node_requirements import (
    RequiredCapacity,
    RequiredLabels,
)
from fleet.models import Cluster, Pod
from fleet.observation.services import record
from fleet.observation.services.record import ObservedChanges
from tests.fleet.objects import START, node, pod

GPU = "nvidia.com/gpu"
SPOT = {"eks.amazonaws.com/capacityType": "SPOT", "karpenter.sh/capacity-type": ""}
pytestmark = pytest.mark.django_db


def see(cluster: Cluster, *items: dict[str, Any]) -> None:
    changes = ObservedChanges(
        nodes=[item for item in items if item["kind"] == "Node"],
        pods=[item for item in items if item["kind"] == "Pod"],
    )
    record.record(cluster_id=cluster.pk, changes=changes, at=START)


def fits(cluster: Cluster, *, replicas: int = 1, **fields: Any) -> Fit:
    size: dict[str, Any] = {"instance_types": ("g5.xlarge",), "gpu_resource": GPU, "gpus": 1}
    return fit.fits_now(
        node_spaces.list_spaces(cluster.pk),
        size=ReplicaSize(**(size | fields)),
        replicas=replicas,
    )


def requesting(cpu: str, memory: str, **fields: Any) -> dict[str, Any]:
    made = pod(**fields)
    resources = made["spec"]["containers"][0]["resources"]
    resources["requests"] = {"cpu": cpu, "memory": memory}
    return made


def test_replicas_fit_while_gpus_are_free(cluster: Cluster, detector: int) -> None:
    see(cluster, node("a"), node("b"), pod(node_name="a"))

    assert fits(cluster) == Fit(ok=True, reason="1 of this size fits now.")
    assert fits(cluster, replicas=2) == Fit(
        ok=False,
        reason="1 of 2 fit now: not enough GPU (1 of 2 GPUs free on 2 nodes).",
        short_of=("GPU",),
    )


def test_memory_counts_and_more_than_a_node_has_never_fits(cluster: Cluster) -> None:
    whole = {GPU: "4", "cpu": "47810m", "memory": "178Gi"}
    big: dict[str, Any] = {"instance_types": ("g5.12xlarge",)}
    for name in ("a", "b"):
        see(cluster, node(name, instance_type="g5.12xlarge", gpus=4, allocatable=whole))

    assert fits(cluster, memory="40Gi", replicas=8, **big).ok
    assert fits(cluster, memory="60Gi", replicas=8, **big) == Fit(
        ok=False,
        reason="4 of 8 fit now: not enough memory (356 Gi of 356 Gi memory free on 2 nodes).",
        short_of=("memory",),
    )
    assert fits(cluster, memory="400Gi", **big) == Fit(
        ok=False,
        reason="A g5.12xlarge node has 178 Gi memory, and a replica requests 400 Gi memory.",
        short_of=("memory",),
        is_possible=False,
    )


def test_cpu_that_pods_hold_is_not_free(cluster: Cluster, detector: int) -> None:
    whole = {GPU: "4", "cpu": "8", "memory": "178Gi"}
    busy = requesting("5", "1Gi", node_name="a")
    see(cluster, node("a", gpus=4, allocatable=whole), busy)

    row = Pod.objects.get()
    assert (row.cpu_millicores, row.memory_bytes) == (5000, 1024**3)
    assert fits(cluster, cpu="3").ok
    assert fits(cluster, cpu="2", replicas=2).reason == (
        "1 of 2 fit now: not enough CPU (3 of 8 cores free on 1 node)."
    )
    assert fits(cluster, cpu="2", memory="177Gi", replicas=2).short_of == ("CPU", "memory")


def test_replica_never_spans_two_nodes(cluster: Cluster) -> None:
    see(cluster, node("a"), node("b"))

    assert fits(cluster, gpus=2) == Fit(
        ok=False,
        reason="A g5.xlarge node has 1 GPU, and a replica requests 2 GPUs.",
        short_of=("GPU",),
        is_possible=False,
    )


@pytest.mark.parametrize(
    ("requested", "ok", "short_of"),
    [("on-demand", False, ("capacity type",)), ("spot", True, ()), ("any", True, ())],
)
def test_capacity_type_counts(
    cluster: Cluster, requested: str, ok: bool, short_of: tuple[str, ...]
) -> None:
    see(cluster, node("a", labels=SPOT), node("b", labels=SPOT))

    required = () if requested == "any" else (RequiredCapacity(requested),)

    result = fits(cluster, requirements=required)

    assert (result.ok, result.short_of) == (ok, short_of)
    if not ok:
        assert result.reason == (
            "There is no on-demand g5.xlarge node in the cluster now: its 2 nodes are spot."
        )


def test_reason_names_what_is_missing(cluster: Cluster) -> None:
    assert fits(cluster).reason == "There is no g5.xlarge node in the cluster now."
    see(cluster, node("a"))
    assert fits(cluster, gpu_resource="nvidia.com/mig-1g.10gb").reason == (
        "No g5.xlarge node offers nvidia.com/mig-1g.10gb."
    )


@pytest.mark.usefixtures("catalogue")
def test_node_that_would_be_started_is_as_large_as_the_price_list_says(cluster: Cluster) -> None:
    assert fits(cluster, memory="13Gi").is_possible
    result = fits(cluster, memory="64Gi")

    assert (result.ok, result.is_possible, result.short_of) == (False, False, ("memory",))


def test_node_that_is_not_ready_gives_nothing(cluster: Cluster) -> None:
    see(cluster, node("a", is_ready=False))

    assert fits(cluster) == Fit(
        ok=False, reason="0 of 1 fit now; 1 of 1 node not ready or cordoned."
    )


def test_only_nodes_with_the_requested_labels_count(cluster: Cluster) -> None:
    see(cluster, node("a", labels={"pool": "serving"}), node("b"), node("c", labels={"pool": "x"}))

    serving = (RequiredLabels((("pool", "serving"),)),)
    in_zone = (RequiredLabels((("pool", "serving"), ("zone", "a"))),)

    assert fits(cluster, requirements=serving).ok
    assert fits(cluster, replicas=2, requirements=serving).reason.startswith("1 of 2 fit")
    assert fits(cluster, requirements=in_zone) == Fit(
        ok=False,
        reason="There is no g5.xlarge node with pool=serving, zone=a in the cluster now. "
        "Its 3 nodes do not have it.",
        short_of=("node labels",),
    )


def test_the_first_requirement_that_no_node_meets_is_named(cluster: Cluster) -> None:
    see(cluster, node("a", labels=SPOT), node("b", labels={"pool": "serving"}))
    serving = RequiredLabels((("pool", "serving"),))

    both = fits(cluster, requirements=(RequiredCapacity("spot"), serving))
    alone = fits(cluster, requirements=(serving,))

    assert (both.ok, both.short_of) == (False, ("node labels",))
    assert both.reason.endswith("Its 1 node does not have it.")
    assert alone.ok
