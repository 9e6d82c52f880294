"""What Karpenter's node pools would start, by the name of a type."""

from __future__ import annotations

from typing import Any

import pytest

from fleet.clusters.domain.node_pools import NodePool, NodeStart, allows, check_start, parse_pools


def pool(*requirements: tuple[str, str, list[str]], **rest: Any) -> dict[str, Any]:
    terms = [{"key": key, "operator": how, "values": values} for key, how, values in requirements]
    return {
        "metadata": {"name": rest.get("name", "gpu")},
        "spec": {
            "template": {"spec": {"requirements": terms}},
            "limits": {"nvidia.com/gpu": rest["limit"]} if "limit" in rest else {},
        },
        "status": {
            "resources": {"nvidia.com/gpu": rest.get("gpus", "0")},
            "conditions": [{"type": "Ready", "status": rest.get("ready", "True")}],
        },
    }


FAMILY = ("karpenter.k8s.aws/instance-family", "In", ["g5", "g6"])
SPOT = ("karpenter.sh/capacity-type", "In", ["spot"])


def start(*items: dict[str, Any], capacity: str = "on-demand", gpus: int = 2) -> NodeStart:
    return check_start(parse_pools(items), instance_type="g5.xlarge", capacity=capacity, gpus=gpus)


@pytest.mark.parametrize(
    ("requirement", "is_allowed"),
    [
        (FAMILY, True),
        (("karpenter.k8s.aws/instance-family", "NotIn", ["g5"]), False),
        (("node.kubernetes.io/instance-type", "In", ["p4d.24xlarge"]), False),
        (("karpenter.k8s.aws/instance-category", "In", ["g", "p"]), True),
        (("karpenter.k8s.aws/instance-generation", "Gt", ["5"]), False),
        (("karpenter.k8s.aws/instance-generation", "Gt", ["4"]), True),
        (("karpenter.k8s.aws/instance-size", "In", ["xlarge"]), True),
        (("example.com/anything", "In", ["x"]), True),
    ],
)
def test_a_type_is_compared_by_its_name(
    requirement: tuple[str, str, list[str]], is_allowed: bool
) -> None:
    (pools,) = parse_pools([pool(requirement)])

    assert allows(pools, "g5.xlarge", "on-demand") is is_allowed


@pytest.mark.parametrize(
    ("capacity", "without", "with_spot"),
    [("on-demand", True, False), ("spot", False, True), ("any", True, True)],
)
def test_without_a_word_on_capacity_only_on_demand_nodes_start(
    capacity: str, without: bool, with_spot: bool
) -> None:
    plain, spot = parse_pools([pool(FAMILY, name="a"), pool(FAMILY, SPOT, name="b")])

    assert allows(plain, "g5.xlarge", capacity) is without
    assert allows(spot, "g5.xlarge", capacity) is with_spot


def test_a_full_pool_is_reported_with_its_limit_and_another_pool_is_used() -> None:
    full = pool(FAMILY, limit="8", gpus="7")

    assert start(full).message == (
        "Node pool gpu is limited to 8 GPUs and has 7; 2 more are needed."
    )
    assert start(full, pool(FAMILY, name="other")) == NodeStart(
        ok=True,
        message="Node pool other will start a g5.xlarge, which takes a few minutes.",
        pool="other",
    )


def test_pools_that_are_not_ready_or_not_there_start_nothing() -> None:
    assert start(pool(FAMILY, ready="False")).message == "Node pool gpu is not ready."
    assert start().message == "No node pool starts on-demand g5.xlarge (there is none)."


def test_a_pool_survives_json() -> None:
    (pools,) = parse_pools([pool(FAMILY, limit="8", gpus="7")])

    assert NodePool.from_json(pools.to_json()) == pools
