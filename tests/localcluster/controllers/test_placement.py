"""The node of a pod, and the message where there is none."""

from collections import defaultdict
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slipway_localcluster.controllers import nodes, placement, resources
from tests.localcluster.controllers import manifests

_NODES = [nodes.node_of(machine, is_simulated=True) for machine in nodes.SIMULATED]


def test_too_many_gpus_are_refused_with_the_message_of_kubernetes() -> None:
    chosen = placement.place(manifests.gpu_pod(5), _NODES, {})

    assert chosen.node is None
    assert chosen.message == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."


def test_each_node_names_its_own_reason() -> None:
    used = {"local-t4-1": {"nvidia.com/gpu": Decimal(4)}}

    chosen = placement.place(manifests.gpu_pod(1, cpu="6", memory="20Gi"), _NODES, used)

    assert chosen.message == (
        "0/3 nodes are available: 1 Insufficient nvidia.com/gpu, 2 Insufficient cpu, "
        "2 Insufficient memory."
    )


def test_a_pod_without_toleration_is_refused_by_the_taint() -> None:
    chosen = placement.place(manifests.pod(), _NODES, {})

    assert chosen.message == (
        "0/3 nodes are available: 3 node(s) had untolerated taint {nvidia.com/gpu: true}."
    )


def test_a_preferred_instance_type_is_used_before_the_others_and_they_when_it_is_full() -> None:
    labels = [node["metadata"]["labels"] for node in _NODES]
    a10g, t4 = (labels[index]["node.kubernetes.io/instance-type"] for index in (1, 2))
    pod = manifests.gpu_pod(1)
    key = "node.kubernetes.io/instance-type"
    pod["spec"]["affinity"] = {
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {
                "nodeSelectorTerms": [
                    {"matchExpressions": [{"key": key, "operator": "In", "values": [t4, a10g]}]}
                ]
            },
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {
                    "weight": 100,
                    "preference": {
                        "matchExpressions": [{"key": key, "operator": "In", "values": [t4]}]
                    },
                }
            ],
        }
    }
    full = {"local-t4-1": {"nvidia.com/gpu": Decimal(4)}}

    assert a10g != t4
    assert placement.place(pod, _NODES, {}).node == "local-t4-1"
    assert placement.place(pod, _NODES, full).node in {"local-a10g-1", "local-a10g-2"}


def test_node_selector_and_cordon_are_respected() -> None:
    pod = manifests.gpu_pod(1)
    pod["spec"]["nodeSelector"] = {"nvidia.com/gpu.product": "NVIDIA-A10G"}
    cordoned = {**_NODES[0], "spec": {**_NODES[0]["spec"], "unschedulable": True}}

    chosen = placement.place(pod, [cordoned, *_NODES[1:]], {})
    refused = placement.place(pod, [cordoned, _NODES[2]], {})

    assert chosen.node == "local-a10g-2"
    assert refused.message == (
        "0/2 nodes are available: 1 node(s) didn't match Pod's node affinity/selector, "
        "1 node(s) were unschedulable."
    )


@pytest.mark.parametrize(
    ("operator", "values", "node"),
    [
        ("In", ["Tesla-T4"], "local-t4-1"),
        ("NotIn", ["NVIDIA-A10G"], "local-t4-1"),
        ("DoesNotExist", [], None),
    ],
)
def test_required_node_affinity_is_respected(
    operator: str, values: list[str], node: str | None
) -> None:
    expression = {"key": "nvidia.com/gpu.product", "operator": operator, "values": values}
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    pod = manifests.gpu_pod(1)
    pod["spec"]["affinity"] = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}
    }

    assert placement.place(pod, _NODES, {}).node == node


def test_a_cluster_without_nodes_is_reported() -> None:
    message = placement.place(manifests.pod(), [], {}).message

    assert message == "no nodes available to schedule pods"


_pods = st.lists(
    st.tuples(st.integers(0, 5), st.integers(100, 60000), st.integers(64, 200000)), max_size=60
)


@given(_pods)
@settings(max_examples=60, deadline=None)
def test_no_node_is_ever_over_committed(requests: list[tuple[int, int, int]]) -> None:
    used: defaultdict[str, resources.Amounts] = defaultdict(dict)

    for number, (gpus, cpu, memory) in enumerate(requests):
        pod = manifests.gpu_pod(gpus, cpu=f"{cpu}m", memory=f"{memory}Mi", name=f"p{number}")
        chosen = placement.place(pod, _NODES, used)
        if chosen.node is not None:
            used[chosen.node] = resources.add(used[chosen.node], resources.sum_pod_requests(pod))
        else:
            assert chosen.message.startswith("0/3 nodes are available: ")

    for node in _NODES:
        allocatable = resources.read_allocatable(node)
        for name, amount in used[node["metadata"]["name"]].items():
            assert amount <= allocatable[name]
