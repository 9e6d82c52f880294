"""Several instance types of a spec, as text and in their order."""

from __future__ import annotations

from typing import Any

import pytest

from deployments.spec.domain import node_selection
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected

OTHER = "placement.other_instance_types"


def spec(others: str, **changed: Any) -> ServingSpec:
    placement = {"other_instance_types": others}
    data = {"engine": "triton", "instance_type": "g5.xlarge", "placement": placement, **changed}
    return ServingSpec.from_json(data)


def test_the_order_is_kept() -> None:
    chosen = spec(" g6.xlarge,g5.2xlarge ,")

    assert chosen.instance_types == ("g5.xlarge", "g6.xlarge", "g5.2xlarge")
    assert chosen.placement.other_instance_types == "g6.xlarge, g5.2xlarge"
    assert spec("").instance_types == ("g5.xlarge",)


@pytest.mark.parametrize(
    "text",
    [
        "g6.xlarge; g5.2xlarge",
        "g6 xlarge",
        "g6.xlarge, g6.xlarge",
        "a" * 41,
        ", ".join(f"g{number}.xlarge" for number in range(10, 16)),
    ],
)
def test_what_is_no_list_of_instance_types_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="instance types"):
        node_selection.split_types(text)
    with pytest.raises(Rejected) as raised:
        spec(text)
    assert raised.value.fields[OTHER] == (
        "Write them as names of instance types, each once, up to 5."
    )


def test_the_chosen_type_is_not_named_again() -> None:
    with pytest.raises(Rejected) as raised:
        spec("g6.xlarge, g5.xlarge")

    assert raised.value.fields[OTHER] == "g5.xlarge is already the instance type. Remove it here."


def test_a_replica_over_several_nodes_has_one_instance_type() -> None:
    llm = {"hugging_face_id": "org/model", "nodes": 2}

    with pytest.raises(Rejected) as raised:
        spec("g6.xlarge", engine="llm-inference-service", llm=llm)

    assert "run on one instance type" in raised.value.fields[OTHER]
