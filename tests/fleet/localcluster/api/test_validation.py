"""Invalid objects are refused with the field that is wrong."""

import os
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.localcluster.errors import JsonObject
from tests.fleet.localcluster.api.manifests import (
    DEPLOYMENTS,
    SERVICES,
    deployment,
    inference_service,
)
from tests.fleet.localcluster.conftest import start_api, stop_api

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


_RESOURCES = "spec/predictor/model/resources"


_FAULTS = [
    ("metadata/name", "Bad_Name", "metadata.name"),
    ("metadata/labels", {"x": "no spaces"}, "metadata.labels.x"),
    (f"{_RESOURCES}/limits/nvidia.com~gpu", "0.5", "spec.predictor.model.resources.limits"),
    (f"{_RESOURCES}/requests/nvidia.com~gpu", "2", "spec.predictor.model.resources.requests"),
    (f"{_RESOURCES}/limits/memory", "lots", "spec.predictor.model.resources.limits.memory"),
    ("spec/predictor/minReplicas", -1, "spec.predictor.minReplicas"),
    ("spec/predictor/model/modelFormat", {}, "spec.predictor.model.modelFormat.name"),
]


@pytest.mark.parametrize(("path", "value", "field"), _FAULTS)
def test_bad_inference_service_is_refused_with_its_field(
    http: httpx.Client, namespace: str, path: str, value: Any, field: str
) -> None:
    body = inference_service("detector")
    node: Any = body
    *parents, last = path.split("/")
    for part in parents:
        node = node.setdefault(part, {})
    node[last.replace("~", "/")] = value
    url = SERVICES.format(namespace)

    refused = http.post(url, json=body)

    causes = refused.json()["details"]["causes"]
    assert refused.status_code == 422
    assert any(cause["field"].startswith(field) for cause in causes), causes
    assert http.get(url).json()["items"] == []


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("spec/replicas", "two", "spec.replicas"),
        ("spec/selector", {"matchLabels": {"x": "y"}}, "spec.template.metadata.labels"),
        ("spec/template/spec/containers/0/image", 7, "spec.template.spec.containers[0].image"),
        ("spec/selector", None, "spec.selector"),
    ],
)
def test_bad_deployment_is_refused_with_its_field(
    http: httpx.Client, namespace: str, path: str, value: Any, field: str
) -> None:
    refused = http.post(DEPLOYMENTS.format(namespace), json=_with(deployment("web"), path, value))

    assert refused.status_code == 422
    assert [cause["field"] for cause in refused.json()["details"]["causes"]] == [field]


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
