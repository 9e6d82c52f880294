"""A pipeline whose deployment needs a key: KServe's graph as the portal writes it, routers, Triton and a real Envoy."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from deployments.access.domain import headers
from deployments.pipelines.domain import manifests as graph_manifests
from deployments.pipelines.domain import pipeline_spec
from deployments.pipelines.domain.manifests import GraphContext
from slipway_localcluster import bootstrap
from slipway_localcluster.controllers import conditions
from slipway_localcluster.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    HTTP_ROUTE,
    HTTP_ROUTE_FILTER,
    INFERENCE_GRAPH,
    INFERENCE_SERVICE,
    SECRET,
    SECURITY_POLICY,
)
from tests import plain_http
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.running import BUCKET, Running, pair
from tests.waiting import wait_for

_PATH = "v2/models/adder/infer"
_KEY = "slc_of 100% of the pipeline"


@pytest.fixture(scope="module")
def protected(cluster: Running) -> Running:
    """The deployment `digits` that only takes the pipeline's key, and the pipeline `both`."""
    store = cluster.store
    bootstrap.seed(store)
    store.create(INFERENCE_SERVICE, manifests.service("digits-r1", f"s3://{BUCKET}/one/"))
    cluster.wait_until_ready("digits-r1")
    store.create(HTTP_ROUTE, manifests.route({"digits-r1": 100}))
    store.create(
        SECRET, _secret("digits-callers", **{"pipeline.both.1": _KEY, "billing.2": "slc_b"})
    )
    auth = {
        "credentialRefs": [{"name": "digits-callers"}],
        "extractFrom": [{"headers": list(headers.HEADERS)}],
        "forwardClientIDHeader": headers.CALLER_HEADER,
        "sanitize": True,
    }
    target = {"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "digits"}
    policy = {"targetRefs": [target], "apiKeyAuth": auth}
    store.create(SECURITY_POLICY, {"metadata": _metadata("digits"), "spec": policy})
    for kind, made in _pipeline(cluster, "both"):
        store.create(kind, made)
    wait_for("the router is up", lambda: _is_up(cluster, "both"))
    wait_for("the pipeline has a route", lambda: _ask(cluster, "both").status_code != 404)
    return cluster


def _metadata(name: str) -> dict[str, str]:
    return {"name": name, "namespace": "vision"}


def _secret(name: str, **data: str) -> dict[str, Any]:
    encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
    return {"metadata": _metadata(name), "data": encoded}


def _pipeline(cluster: Running, name: str) -> list[tuple[Any, dict[str, Any]]]:
    context = GraphContext(
        team="vision",
        namespace="vision",
        name=name,
        pipeline_id=1,
        gateway_url=cluster.url(""),
        gateway_namespace="slipway-gateway",
        gateway_name="slipway",
    )
    steps = [
        {"deployment": "digits", "is_required": True},
        {"deployment": "digits", "name": "again"},
    ]
    spec = pipeline_spec.from_json(
        {"nodes": [{"name": "root", "kind": "ensemble", "steps": steps}]}
    )
    return [
        (INFERENCE_GRAPH, graph_manifests.inference_graph(context, spec, {"digits": _PATH})),
        (SECRET, graph_manifests.secret(context, _KEY)),
        (HTTP_ROUTE_FILTER, graph_manifests.key_filter(context)),
        (HTTP_ROUTE, graph_manifests.http_route(context, has_key=True)),
    ]


def _is_up(cluster: Running, name: str) -> bool:
    router = cluster.store.find(DEPLOYMENT, "vision", name)
    return router is not None and conditions.is_true(router, "Available")


def _ask(cluster: Running, path: str, headers: dict[str, str] | None = None) -> Any:
    url = cluster.url(f"/vision/{path}")
    return plain_http.client.post(url, json=pair(1, 2), headers=headers, timeout=10)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"x-api-key": "slc_wrong"},
        {"X-API-KEY": "slc_b"},
        {"Authorization": "Bearer slc_wrong"},
        {"x-api-key": "", "Authorization": "Bearer slc_b"},
    ],
)
def test_the_pipeline_reaches_the_deployment_whatever_key_its_caller_sends(
    protected: Running, headers: dict[str, str]
) -> None:
    wait_for("it answers", lambda: _ask(protected, "both", headers).status_code == 200)
    answer = _ask(protected, "both", headers)

    assert set(answer.json()) == {"digits", "again"}
    assert all(step["outputs"] for step in answer.json().values())


@pytest.mark.parametrize(("headers", "status"), [({}, 401), ({"x-api-key": _KEY}, 200)])
def test_directly_it_takes_a_key(protected: Running, headers: dict[str, str], status: int) -> None:
    assert _ask(protected, f"digits/{_PATH}", headers).status_code == status


def test_without_the_listed_header_or_the_secret_nobody_gets_through(protected: Running) -> None:
    store = protected.store
    secret = store.get(SECRET, "vision", "both-pipeline-key")
    store.delete(SECRET, "vision", "both-pipeline-key")
    wait_for("it is closed", lambda: _ask(protected, "both").status_code == 500)
    store.create(SECRET, {"metadata": _metadata("both-pipeline-key"), "data": secret["data"]})
    wait_for("it answers again", lambda: _ask(protected, "both").status_code == 200)

    settings = store.get(CONFIG_MAP, *bootstrap.KSERVE_SETTINGS)
    other = json.dumps({"headers": {"propagate": ["x-api-key", "[", "X-Request-Id"]}})
    store.replace(CONFIG_MAP, settings | {"data": {"router": other}})
    try:
        # The refusal of the gateway is no JSON, which an ensemble of KServe's cannot merge.
        wait_for(
            "the member refuses", lambda: "not answer with a JSON" in _ask(protected, "both").text
        )
        template = store.get(DEPLOYMENT, "vision", "both")["spec"]["template"]
        assert template["spec"]["containers"][0]["env"] == [
            {"name": "PROPAGATE_HEADERS", "value": "x-api-key,[,X-Request-Id"}
        ]
    finally:
        changed = store.get(CONFIG_MAP, *bootstrap.KSERVE_SETTINGS)
        store.replace(CONFIG_MAP, changed | {"data": settings["data"]})
    wait_for("it answers as before", lambda: _ask(protected, "both").status_code == 200)
