"""DeviceTaintRules are read with each sweep."""

from __future__ import annotations

from typing import Any

from fleet.models import Cluster, Node
from tests.fleet.dra_nodes import dra_node, gpu, resource_slice
from tests.fleet.fakes import FakeKube
from tests.fleet.observation.test_claims import sweep_at

RULE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceTaintRule",
    "metadata": {"name": "hot", "uid": "uid-hot", "resourceVersion": "1"},
    "spec": {
        "deviceSelector": {"driver": "gpu.nvidia.com", "pool": "dra-1", "device": "gpu-0"},
        "taint": {"key": "example.com/hot", "effect": "NoExecute"},
    },
}


def healthy() -> list[bool]:
    return [device["is_healthy"] for device in Node.objects.get().claimable["devices"]]


def test_a_rule_counts_from_the_next_sweep_on_and_as_long_as_it_is_there(
    kube: FakeKube, cluster: Cluster
) -> None:
    kube.put(dra_node(), resource_slice("dra-1", gpu(0), gpu(1)))
    sweep_at(0)
    assert healthy() == [True, True]

    kube.put(RULE)
    sweep_at(1)
    assert healthy() == [False, True]
    (tainted,) = Node.objects.get().tainted_gpus
    assert tainted["gpu"] == "GPU-0"

    kube.forbidden = {"devicetaintrules"}
    sweep_at(2)
    assert healthy() == [False, True], "what cannot be read is as it was"
    assert Cluster.objects.get().devices_read_at is not None

    kube.forbidden = set()
    kube.remove("DeviceTaintRule", "", "hot")
    sweep_at(3)
    assert healthy() == [True, True]
    assert Node.objects.get().tainted_gpus == []
