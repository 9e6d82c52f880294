"""Node affinity of several instance types, for the scheduler and for Karpenter, which read it differently."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from deployments.manifests.domain import revision
from deployments.spec.domain import serving_spec
from deployments.spec.domain.serving_spec import Llm, Placement
from tests.contract.conftest import served
from tests.deployments.manifest_strategies import CONTEXT

TYPE = "node.kubernetes.io/instance-type"
TYPES = {"key": TYPE, "operator": "In", "values": ["g5.xlarge", "g6.xlarge", "g5.2xlarge"]}
OTHERS = "g6.xlarge, g5.2xlarge"


def pods_of(engine: str, placement: Placement) -> list[dict[str, Any]]:
    """Every pod spec of the revision's own objects that requests GPUs."""
    one = served(engine)
    spec = one.spec.replace(placement=placement)
    if engine in serving_spec.LLM_ENGINES:
        spec = spec.replace(llm=Llm(hugging_face_id="org/model"))
    return list(_pods(revision.build_own(CONTEXT, replace(one, spec=spec))))


def _pods(value: Any) -> Any:
    if isinstance(value, list):
        for item in value:
            yield from _pods(item)
    elif isinstance(value, dict):
        if "tolerations" in value and "affinity" in value:
            yield value
        for item in value.values():
            yield from _pods(item)


@pytest.mark.parametrize("engine", serving_spec.ENGINES)
def test_pods_of_every_engine_go_to_any_of_them_in_their_order(engine: str) -> None:
    pods = pods_of(engine, Placement(other_instance_types=OTHERS, node_labels="pool=serving"))

    assert pods
    for pod in pods:
        assert pod["nodeSelector"] == {"pool": "serving"}
        affinity = pod["affinity"]["nodeAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
        assert [rule["operator"] for rule in term["matchExpressions"]] == ["In", "NotIn", "NotIn"]
        assert term["matchExpressions"][0] == TYPES
        assert affinity["preferredDuringSchedulingIgnoredDuringExecution"] == [
            {"weight": weight, "preference": {"matchExpressions": [{**TYPES, "values": [name]}]}}
            for weight, name in ((100, "g5.xlarge"), (80, "g6.xlarge"))
        ]


def test_any_capacity_still_requires_the_instance_types() -> None:
    (pod,) = pods_of("triton", Placement(other_instance_types=OTHERS, capacity="any"))

    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert "nodeSelector" not in pod
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [TYPES]}]}


def test_with_spot_the_term_that_karpenter_keeps_is_its_own() -> None:
    """It drops terms from the front before it tries the next preferred type."""
    (pod,) = pods_of("triton", Placement(other_instance_types=OTHERS, capacity="spot"))

    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    first, last = (term["matchExpressions"] for term in required["nodeSelectorTerms"])
    assert first[0] == last[0] == TYPES
    assert first[1]["key"] == "eks.amazonaws.com/capacityType"
    assert last[1]["key"] == "karpenter.sh/capacity-type"


def test_one_type_is_written_as_before() -> None:
    (pod,) = pods_of("triton", Placement())

    assert pod["nodeSelector"] == {TYPE: "g5.xlarge"}
    assert list(pod["affinity"]["nodeAffinity"]) == [
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]
