"""What Karpenter's node pools would start, by the name of a type."""

from __future__ import annotations

import csv
from typing import Any

import pytest

from fleet.clusters.domain.node_pools import NodePool, NodeStart, check_start, parse_pools
from fleet.clusters.domain.node_requirements import (
    NodeRequirement,
    RequiredCapacity,
    RequiredLabels,
)
from fleet.gpus.domain import ec2_types, neuron
from fleet.prices.services.catalogue import CATALOGUE


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


def required(capacity: str) -> tuple[NodeRequirement, ...]:
    return () if capacity == "any" else (RequiredCapacity(capacity),)


def start(*items: dict[str, Any], capacity: str = "on-demand", gpus: int = 2) -> NodeStart:
    return check_start(
        parse_pools(items),
        instance_type="g5.xlarge",
        requirements=required(capacity),
        gpus=gpus,
    )


def allows(pool: NodePool, instance_type: str, capacity: str) -> bool:
    """Whether the pool, which has room, starts a node of the type for pods of this capacity type."""
    return check_start(
        [pool], instance_type=instance_type, requirements=required(capacity), gpus=1
    ).ok


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


RESERVED = ("karpenter.sh/capacity-type", "In", ["reserved"])
P5 = ("node.kubernetes.io/instance-type", "In", ["p5.48xlarge"])


@pytest.mark.parametrize(
    ("capacity", "is_started"), [("on-demand", True), ("any", True), ("spot", False)]
)
def test_reserved_capacity_is_on_demand_to_pods(capacity: str, is_started: bool) -> None:
    pools = parse_pools([pool(RESERVED, P5, name="p5-reserved")])

    result = check_start(
        pools, instance_type="p5.48xlarge", requirements=required(capacity), gpus=8
    )

    assert result.ok is is_started
    if is_started:
        assert result.message == (
            "Node pool p5-reserved will start a p5.48xlarge if its reservation has room, which takes a few minutes."
        )


def test_a_pool_that_needs_no_reservation_comes_first() -> None:
    pools = parse_pools([pool(RESERVED, P5, name="a"), pool(P5, name="b")])

    assert check_start(pools, instance_type="p5.48xlarge", gpus=8).pool == "b"


ZONE_A = ("topology.kubernetes.io/zone", "In", ["us-east-1a"])


@pytest.mark.parametrize(
    ("requirement", "answer"),
    [
        (ZONE_A, True),
        (("topology.kubernetes.io/zone", "In", ["us-east-1b"]), False),
        (("topology.kubernetes.io/zone", "NotIn", ["us-east-1b"]), True),
        (("topology.kubernetes.io/zone", "NotIn", ["us-east-1a"]), False),
        (("topology.kubernetes.io/zone", "Exists", []), True),
        (("topology.kubernetes.io/zone", "DoesNotExist", []), False),
        (FAMILY, None),
    ],
)
def test_a_pool_gives_nodes_a_label_or_not_or_it_cannot_be_known(
    requirement: tuple[str, str, list[str]], answer: bool | None
) -> None:
    (one,) = parse_pools([pool(requirement)])
    zone = RequiredLabels((("topology.kubernetes.io/zone", "us-east-1a"),))

    assert zone.is_met_by_pool(one, "g5.xlarge") is answer


def test_a_pool_that_certainly_gives_the_label_comes_first() -> None:
    zone = RequiredLabels((("topology.kubernetes.io/zone", "us-east-1a"),))
    unknown, certain = pool(FAMILY, name="a"), pool(FAMILY, ZONE_A, name="b")
    elsewhere = pool(("topology.kubernetes.io/zone", "In", ["us-east-1b"]), name="c")

    def started(*items: dict[str, Any]) -> NodeStart:
        return check_start(
            parse_pools(items), instance_type="g5.xlarge", requirements=(zone,), gpus=1
        )

    assert (started(unknown, certain).pool, started(unknown, certain).doubt) == ("b", "")
    assert started(unknown, elsewhere).doubt == (
        "Pods would stay pending if its nodes do not get these labels."
    )
    assert started(elsewhere) == NodeStart(
        ok=False,
        message="No node pool starts g5.xlarge with topology.kubernetes.io/zone=us-east-1a (c).",
    )


@pytest.mark.parametrize("prefix", ["karpenter.k8s.aws", "eks.amazonaws.com"])
@pytest.mark.parametrize(
    ("label", "operator", "values", "is_allowed"),
    [
        ("instance-gpu-name", "In", ["a10g"], True),
        ("instance-gpu-name", "In", ["l4", "t4"], False),
        ("instance-gpu-name", "NotIn", ["a10g"], False),
        ("instance-gpu-name", "Exists", [], True),
        ("instance-gpu-name", "DoesNotExist", [], False),
        ("instance-gpu-count", "In", ["1"], True),
        ("instance-gpu-count", "Gt", ["1"], False),
        ("instance-gpu-count", "Gte", ["1"], True),
        ("instance-gpu-count", "Lt", ["2"], True),
        ("instance-gpu-count", "Lte", ["0"], False),
        ("instance-gpu-memory", "Gt", ["30000"], False),
        ("instance-gpu-manufacturer", "In", ["amd"], False),
        ("instance-family", "In", ["g6"], False),
        ("instance-cpu", "In", ["96"], True),
    ],
)
def test_gpus_of_a_type_are_compared(
    prefix: str, label: str, operator: str, values: list[str], is_allowed: bool
) -> None:
    (one,) = parse_pools([pool((f"{prefix}/{label}", operator, values))])

    assert allows(one, "g5.xlarge", "on-demand") is is_allowed


@pytest.mark.parametrize(
    ("instance_type", "architecture"),
    [
        ("g5.xlarge", "amd64"),
        ("g5g.xlarge", "arm64"),
        ("g4dn.xlarge", "amd64"),
        ("p6-b200.48xlarge", "amd64"),
        ("p6e-gb200.36xlarge", "arm64"),
        ("c7gn.large", "arm64"),
        ("gr6.4xlarge", "amd64"),
    ],
)
def test_the_processor_of_a_type_is_compared(instance_type: str, architecture: str) -> None:
    for name in ("amd64", "arm64"):
        (one,) = parse_pools([pool(("kubernetes.io/arch", "In", [name]))])

        assert allows(one, instance_type, "on-demand") is (name == architecture)


def test_what_a_name_says_of_gpus_is_what_the_catalogue_says() -> None:
    """The GPUs of a part (g6f) are counted as none by Karpenter, so nothing is said of them."""
    with CATALOGUE.open() as file:
        listed = list(csv.DictReader(file))

    for row in listed:
        labels = ec2_types.derive_labels(row["instance_type"])
        if row["gpu_count"] == "0" or row["gpu_name"] in neuron.PRODUCTS:
            assert "karpenter.k8s.aws/instance-gpu-name" not in labels
            continue
        for prefix in ec2_types.LABEL_PREFIXES:
            assert labels[f"{prefix}gpu-name"] == row["gpu_name"], row["instance_type"]
            assert labels[f"{prefix}gpu-count"] == row["gpu_count"], row["instance_type"]
            assert labels[f"{prefix}gpu-memory"] == row["gpu_memory_mib"], row["instance_type"]
