"""What a real API server with KServe stores although it can never run (tests/fidelity/verdicts.json: a memory request over
its limit, port 70000, two models): the portal refuses it at its field, and writes no such thing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given

from deployments.manifests.domain import revision
from deployments.manifests.domain.metadata import ManifestContext, ServedRevision
from deployments.spec.domain.engines import KSERVE_ENGINES
from deployments.spec.domain.serving_spec import ServingSpec
from portal.core.definitions import Rejected
from tests.deployments.manifest_strategies import placed

_GOOD = {"engine": "kserve-triton", "instance_type": "g5.xlarge"}
_VLLM = {**_GOOD, "engine": "kserve-vllm"}


@pytest.mark.parametrize(
    ("data", "field"),
    [
        # There is one amount of memory, which is request and limit.
        ({**_GOOD, "memory_limit": "4Gi"}, "memory_limit"),
        ({**_GOOD, "resources": {"requests": {"memory": "16Gi"}}}, "resources"),
        ({**_GOOD, "memory": "-1Gi"}, "memory"),
        ({**_GOOD, "port": 70000}, "port"),
        ({**_GOOD, "network": {"port": 70000}}, "network.port"),
        ({**_VLLM, "llm": {"hugging_face_id": "a/b", "artifact": "pvc://w/m"}}, "llm.artifact"),
        ({**_VLLM, "storageUris": [{"uri": "s3://b/a"}, {"uri": "s3://b/b"}]}, "storageUris"),
    ],
)
def test_it_is_refused_at_its_field_with_a_reason(data: Mapping[str, Any], field: str) -> None:
    with pytest.raises(Rejected) as raised:
        ServingSpec.from_json(data)

    assert raised.value.fields[field]


@given(placed(KSERVE_ENGINES))
def test_no_spec_becomes_such_an_object(pair: tuple[ManifestContext, ServedRevision]) -> None:
    workload, *_ = revision.build_own(*pair)
    predictor = workload["spec"]["predictor"]

    assert workload["kind"] == "InferenceService"
    assert {"model"} == {"model", "triton", "pytorch", "onnx", "containers"} & set(predictor)
    assert "storageUris" not in predictor
    resources = [value for key, value in _values(predictor) if key == "resources"]
    assert resources
    assert all(one["requests"] == one["limits"] for one in resources)
    ports = [value for key, value in _values(predictor) if key in ("containerPort", "port")]
    assert all(isinstance(port, str) or 0 < port < 65536 for port in ports)


def _values(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    yield key, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _values(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from _values(inner)
