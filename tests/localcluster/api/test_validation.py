"""Invalid objects are refused with the field that is wrong."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway_localcluster.errors import JsonObject
from tests.localcluster.api.manifests import (
    DEPLOYMENTS,
    SERVICES,
    deployment,
    inference_service,
)
from tests.localcluster.conftest import start_api, stop_api

_ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/{}/httproutes"


_APPLY = {"Content-Type": "application/apply-patch+yaml"}


_MERGE = {"Content-Type": "application/merge-patch+json"}


def _with(body: JsonObject, path: str, value: Any) -> JsonObject:
    node: Any = body
    *parents, last = path.split("/")
    for part in parents:
        node = node[int(part)] if isinstance(node, list) else node.setdefault(part, {})
    node[last] = value
    return body


_FAULTS = [
    ("metadata/name", "Bad.Name", 403, "must start with alphabetical character"),
    ("metadata/labels", {"x": "no spaces"}, 422, "metadata.labels: "),
    ("spec/predictor/model/resources/limits/memory", "lots", 400, "quantities must match"),
    ("spec/predictor/minReplicas", -1, 403, "'MinReplicas' cannot be less than 0"),
    ("spec/predictor/minReplicas", "one", 422, "spec.predictor.minReplicas: "),
    ("spec/predictor/scaleMetric", "luck", 422, "spec.predictor.scaleMetric: "),
]


@pytest.mark.parametrize(("path", "value", "status", "message"), _FAULTS)
def test_bad_inference_service_is_refused_with_the_reason(
    http: httpx.Client, namespace: str, path: str, value: Any, status: int, message: str
) -> None:
    body = _with(inference_service("detector"), path, value)
    url = SERVICES.format(namespace)

    refused = http.post(url, json=body)

    assert refused.status_code == status
    assert message in refused.json()["message"]
    assert http.get(url).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec/replicas", -2, "spec.replicas"),
        ("spec/selector", {"matchLabels": {"x": "y"}}, "spec.template.metadata.labels"),
        ("spec/template/spec/containers/0/image", "", "spec.template.spec.containers[0].image"),
    ],
)
def test_bad_deployment_is_refused_with_its_field(
    http: httpx.Client, namespace: str, path: str, value: Any, field: str
) -> None:
    refused = http.post(DEPLOYMENTS.format(namespace), json=_with(deployment("web"), path, value))

    assert refused.status_code == 422
    assert [cause["field"] for cause in refused.json()["details"]["causes"]] == [field]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("spec/replicas", "two", "cannot unmarshal string into Go struct field spec.replicas"),
        (
            "spec/template/spec/containers/0/image",
            7,
            "field spec.template.spec.containers[0].image",
        ),
    ],
)
def test_deployment_of_wrong_types_cannot_be_decoded(
    http: httpx.Client, namespace: str, path: str, value: Any, message: str
) -> None:
    refused = http.post(DEPLOYMENTS.format(namespace), json=_with(deployment("web"), path, value))

    assert (refused.status_code, refused.json()["reason"]) == (400, "BadRequest")
    assert message in refused.json()["message"]


@pytest.mark.parametrize("weight", [-1, 1_000_001, "50", 1.5])
def test_route_weight_out_of_range_is_refused(
    http: httpx.Client, namespace: str, weight: Any
) -> None:
    backends = [{"name": "a", "port": 80, "weight": weight}]
    body = {"metadata": {"name": "r"}, "spec": {"rules": [{"backendRefs": backends}]}}

    refused = http.post(_ROUTES.format(namespace), json=body)

    assert refused.status_code == 422
    cause = refused.json()["details"]["causes"][0]
    assert cause["field"] == "spec.rules[0].backendRefs[0].weight"


@pytest.mark.parametrize(
    "spec", ["x", [1], {"rules": "x"}, {"rules": ["x"]}, {"rules": [{"backendRefs": [1]}]}]
)
def test_route_of_the_wrong_shape_is_refused(http: httpx.Client, namespace: str, spec: Any) -> None:
    body = {"metadata": {"name": "r"}, "spec": spec}

    refused = http.post(_ROUTES.format(namespace), json=body)

    assert refused.status_code == 422
    assert refused.json()["details"]["causes"][0]["reason"] == "FieldValueTypeInvalid"


def test_unknown_field_is_dropped_with_a_warning_unless_strict(
    http: httpx.Client, namespace: str
) -> None:
    url = DEPLOYMENTS.format(namespace)
    body = _with(deployment("web"), "spec/typo", 1)

    strict = http.post(url, json=body, params={"fieldValidation": "Strict"})
    warned = http.post(url, json=body)

    assert strict.status_code == 400
    assert 'unknown field "spec.typo"' in strict.json()["message"]
    assert 'unknown field \\"spec.typo\\"' in warned.headers["Warning"]
    assert "typo" not in warned.json()["spec"]


@pytest.mark.skipif("SLIPWAY_CRD_DIR" not in os.environ, reason="SLIPWAY_CRD_DIR is not set")
def test_custom_resources_are_checked_against_their_schemas(tmp_path: Path) -> None:
    process, api = start_api(tmp_path)
    try:
        with api.client() as client:
            url = SERVICES.format("default")
            good = client.post(
                url, json=inference_service("detector"), params={"fieldValidation": "Strict"}
            )
            typo = _with(inference_service("typo"), "spec/predictor/model/storageUrl", "s3://x/")
            refused = client.post(url, json=typo, params={"fieldValidation": "Strict"})
    finally:
        stop_api(process)
    assert good.status_code == 201
    assert refused.status_code == 400
    assert 'unknown field "spec.predictor.model.storageUrl"' in refused.json()["message"]
