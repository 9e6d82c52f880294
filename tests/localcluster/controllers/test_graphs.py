"""Pipelines as the portal writes them, run by router processes behind a real Envoy."""

from __future__ import annotations

import functools
import json
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import httpx
import pytest

from deployments.pipelines.domain import manifests as graph_manifests
from deployments.pipelines.domain import pipeline_spec
from deployments.pipelines.domain.manifests import GraphContext
from slipway_localcluster.controllers import conditions
from slipway_localcluster.kinds import DEPLOYMENT, HTTP_ROUTE, INFERENCE_GRAPH, POD
from tests import plain_http
from tests.localcluster.controllers.running import Running
from tests.waiting import wait_for

PATHS = dict.fromkeys(("cat", "dog", "broken"), "v2/models/m/infer")


class Members(ThreadingHTTPServer):
    """Stands for deployments: /vision/NAME/… answers with its name, path and request."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name = self.path.split("/")[2]
        answer = {"who": name, "path": self.path, "sent": body, "outputs": [{"data": [0.4]}]}
        content = json.dumps(answer).encode()
        self.send_response(503 if name == "broken" else 200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def members() -> Iterator[str]:
    server = Members()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def node(kind: str, *steps: dict[str, Any], name: str = "root") -> dict[str, Any]:
    return {"name": name, "kind": kind, "steps": list(steps)}


GRAPHS = {
    "all": [node("ensemble", {"deployment": "cat"}, {"deployment": "dog", "name": "other"})],
    "some": [
        node("splitter", {"deployment": "cat", "weight": 80}, {"node": "deep", "weight": 20}),
        node("ensemble", {"deployment": "dog"}, {"deployment": "broken"}, name="deep"),
    ],
    "one": [
        node(
            "switch",
            {"deployment": "cat", "condition": '[@this].#(parameters.pet=="cat")'},
            {"deployment": "dog", "condition": 'inputs.#(name=="bone")'},
        )
    ],
    "rest": [
        node(
            "switch",
            {"deployment": "cat", "condition": "inputs.#(shape.0>=2)"},
            {"deployment": "dog"},
        )
    ],
    "spare": [node("ensemble", {"deployment": "cat"})],
    "unsure": [
        node(
            "sequence",
            {"deployment": "cat"},
            {"deployment": "dog", "condition": "outputs.0.data.#(<0.5)"},
            {"deployment": "cat", "name": "never", "condition": "outputs.0.data.#(>0.5)"},
        )
    ],
    "strict": [
        node(
            "ensemble",
            {"deployment": "cat"},
            {"deployment": "broken", "is_required": True},
        )
    ],
}


@pytest.fixture(scope="module")
def graphs(cluster: Running, members: str) -> Running:
    for number, (name, nodes) in enumerate(GRAPHS.items()):
        place = GraphContext(
            team="vision",
            namespace="vision",
            name=name,
            pipeline_id=number,
            gateway_url=members,
            gateway_namespace="slipway-gateway",
            gateway_name="slipway",
        )
        spec = pipeline_spec.from_json({"nodes": nodes})
        graph, route = graph_manifests.manifests(place, spec, PATHS)
        cluster.store.create(INFERENCE_GRAPH, graph)
        cluster.store.create(HTTP_ROUTE, route)
    for name in GRAPHS:
        wait_for(f"{name} answers", functools.partial(_is_up, cluster, name))
    return cluster


def _is_up(cluster: Running, name: str) -> bool:
    graph = cluster.store.get(INFERENCE_GRAPH, "vision", name)
    router = cluster.store.find(DEPLOYMENT, "vision", name)
    is_available = router is not None and conditions.is_true(router, "Available")
    return conditions.is_true(graph, "Ready") and is_available and infer(cluster, name) != 404


def infer(cluster: Running, name: str, **body: Any) -> Any:
    """The response of the router, or 404 when the gateway has no route to it yet."""
    answer = plain_http.client.post(
        cluster.url(f"/vision/{name}"), json=body or {"inputs": []}, timeout=10
    )
    is_gateway = "application/json" not in answer.headers.get("content-type", "")
    return 404 if is_gateway and answer.status_code in (404, 503) else answer


def who(cluster: Running, name: str, **body: Any) -> str:
    return str(infer(cluster, name, **body).json().get("who"))


def test_an_ensemble_returns_the_response_of_every_step(graphs: Running) -> None:
    answer = infer(graphs, "all", inputs=[{"name": "x"}]).json()

    assert {name: step["who"] for name, step in answer.items()} == {"cat": "cat", "other": "dog"}
    assert {step["path"] for step in answer.values()} == {
        "/vision/cat/v2/models/m/infer",
        "/vision/dog/v2/models/m/infer",
    }
    assert all(step["sent"] == {"inputs": [{"name": "x"}]} for step in answer.values())


def test_a_splitter_follows_weights_into_nested_nodes(graphs: Running) -> None:
    with httpx.Client(verify=False) as client:
        url = graphs.url("/vision/some")
        answers = [client.post(url, json={"inputs": []}).json() for _ in range(200)]

    counted = Counter("cat" if answer.get("who") == "cat" else "deep" for answer in answers)
    # The probability of a count outside these bounds is below 1e-6 at 80%.
    assert 130 <= counted["cat"] <= 187
    deep = next(answer for answer in answers if "who" not in answer)
    # A step that is not required may fail: its response is included.
    assert {name: step["who"] for name, step in deep.items()} == {"dog": "dog", "broken": "broken"}


def test_a_switch_calls_the_first_step_whose_condition_holds(graphs: Running) -> None:
    assert who(graphs, "one", parameters={"pet": "cat"}, inputs=[{"name": "bone"}]) == "cat"
    assert who(graphs, "one", inputs=[{"name": "ball"}, {"name": "bone"}]) == "dog"
    refused = infer(graphs, "one", inputs=[{"name": "ball"}])
    assert (refused.status_code, refused.json()["cause"]) == (
        404,
        "None of the routes matched with the switch condition",
    )
    assert who(graphs, "rest", inputs=[{"shape": [2]}]) == "cat"
    assert who(graphs, "rest", inputs=[{"shape": [1]}]) == "dog"


def test_a_sequence_continues_while_conditions_hold(graphs: Running) -> None:
    answer = infer(graphs, "unsure", inputs=[7])
    assert answer.status_code == 200
    assert (answer.json()["who"], answer.json()["sent"]) == ("dog", {"inputs": [7]})


def test_a_failed_required_step_is_the_response(graphs: Running) -> None:
    answer = infer(graphs, "strict", inputs=[])
    assert (answer.status_code, answer.json()["who"]) == (503, "broken")


def test_deleting_a_graph_deletes_its_router(graphs: Running) -> None:
    labels = {"serving.kserve.io/inferencegraph": "spare"}
    assert len(graphs.store.list(POD, "vision", labels)) == 1
    graphs.store.delete(HTTP_ROUTE, "vision", "spare")
    graphs.store.delete(INFERENCE_GRAPH, "vision", "spare")
    wait_for("the router is gone", lambda: not graphs.store.list(POD, "vision", labels))
    assert graphs.store.find(DEPLOYMENT, "vision", "spare") is None


def test_an_unsupported_graph_is_reported_in_its_status(graphs: Running) -> None:
    step = {"serviceUrl": "http://x", "condition": "inputs|#", "name": "a"}
    spec = {"nodes": {"root": {"routerType": "Switch", "steps": [step]}}}
    metadata = {"name": "odd", "namespace": "vision"}
    graphs.store.create(INFERENCE_GRAPH, {"metadata": metadata, "spec": spec})

    def ready_condition() -> dict[str, Any] | None:
        return conditions.find(graphs.store.get(INFERENCE_GRAPH, "vision", "odd"), "Ready")

    ready = wait_for("a condition", ready_condition)
    assert (ready["status"], ready["reason"]) == ("False", "InvalidGraph")
    assert "GJSON syntax that the local cluster does not support" in ready["message"]
