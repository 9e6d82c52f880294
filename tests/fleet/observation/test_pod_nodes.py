"""The instance types that a pod may run on, as its spec says them."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.spec.domain.placement import catalogue
from deployments.spec.domain.placement.pod_parts import PodContext
from deployments.spec.domain.serving_spec import Placement, ServingSpec
from fleet.clusters.domain.provisioner import NOT_PROBED
from fleet.observation.domain import pod_nodes

KEY = "node.kubernetes.io/instance-type"


def affinity(*terms: list[dict[str, Any]]) -> dict[str, Any]:
    required = {"nodeSelectorTerms": [{"matchExpressions": term} for term in terms]}
    return {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    }


def one_of(*names: str) -> dict[str, Any]:
    return {"key": KEY, "operator": "In", "values": list(names)}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"nodeSelector": {KEY: "g5.xlarge"}}, ["g5.xlarge"]),
        (affinity([one_of("g6.xlarge", "g5.xlarge")]), ["g6.xlarge", "g5.xlarge"]),
        (affinity([one_of("a")], [one_of("a", "b")]), ["a", "b"]),
        (affinity([one_of("a")], [{"key": "zone", "operator": "In", "values": ["x"]}]), []),
        (affinity([{"key": KEY, "operator": "NotIn", "values": ["a"]}]), []),
    ],
)
def test_the_types_are_read_from_selector_and_affinity(
    spec: dict[str, Any], expected: list[str]
) -> None:
    assert pod_nodes.list_instance_types(spec) == expected


@pytest.mark.parametrize("capacity", ["on-demand", "spot", "any"])
def test_what_the_portal_writes_is_read_back(capacity: Any) -> None:
    placement = Placement(capacity=capacity, other_instance_types="g6.xlarge, g5.2xlarge")
    spec = ServingSpec(engine="triton", instance_type="g5.xlarge", placement=placement)
    pod = catalogue.write(spec, PodContext(NOT_PROBED, "detector-r1", {})).node_fields

    assert pod_nodes.list_instance_types(pod) == ["g5.xlarge", "g6.xlarge", "g5.2xlarge"]
