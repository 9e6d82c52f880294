"""InferenceServices with real Triton processes behind a real Envoy."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway_localcluster.controllers.pod_runner import directory_name
from slipway_localcluster.kinds import DEPLOYMENT, EVENT, HTTP_ROUTE, INFERENCE_SERVICE, SERVICE
from tests import plain_http
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.running import (
    Running,
    answer_of,
    pair,
)
from tests.waiting import wait_for


def _create(cluster: Running, name: str, prefix: str, **options: Any) -> None:
    manifest = manifests.service(name, f"s3://models/{prefix}/", **options)
    cluster.store.create(INFERENCE_SERVICE, manifest)


def _route(cluster: Running, weights: dict[str, int], name: str = "digits") -> None:
    cluster.store.create(HTTP_ROUTE, manifests.route(weights, name))


def _is_answering(url: str) -> bool:
    try:
        return plain_http.client.get(url).status_code == 200
    except httpx.TransportError:
        return False


def test_weights_split_requests_and_changes_lose_none(
    cluster: Running,
) -> None:
    _create(cluster, "one", "one", replicas=2)
    _create(cluster, "two", "two")
    ready = cluster.wait_until_ready("one")
    cluster.wait_until_ready("two")
    _route(cluster, {"one": 90, "two": 10})
    url = cluster.url("/vision/digits/v2/models/adder/infer")
    wait_for(
        "answer of the gateway",
        lambda: _is_answering(cluster.url("/vision/digits/v2/models/adder/ready")),
    )

    with httpx.Client(timeout=10) as client:
        answers = [answer_of(client.post(url, json=pair(1, 2))) for _ in range(1000)]
        responses = []
        route = cluster.store.get(HTTP_ROUTE, "vision", "digits")
        for number in range(1500):
            if number == 200:
                route["spec"]["rules"][0]["backendRefs"][0]["weight"] = 50
                route["spec"]["rules"][0]["backendRefs"][1]["weight"] = 50
                cluster.store.replace(HTTP_ROUTE, route)
            if number == 500:
                service = cluster.service("one")
                service["spec"]["predictor"]["minReplicas"] = 1
                cluster.store.replace(INFERENCE_SERVICE, service)
            responses.append(client.post(url, json=pair(1, 2)))

    candidate = sum(answer == [3.0, 4.0] for answer in answers)
    # Six standard deviations of a binomial distribution with n=1000, p=0.1.
    assert 100 - 57 <= candidate <= 100 + 57
    assert all(answer in ([2.0, 3.0], [3.0, 4.0]) for answer in answers)
    assert {response.status_code for response in responses} == {200}
    late = [answer_of(response) == [3.0, 4.0] for response in responses[-500:]]
    assert 180 <= sum(late) <= 320
    assert ready["status"]["modelStatus"]["copies"] == {"failedCopies": 0, "totalCopies": 2}
    assert ready["status"]["servingRuntimeName"] == "slipway-triton"
    assert ready["status"]["address"]["url"] == "http://one-predictor.vision.svc.cluster.local"
    parent = cluster.store.get(HTTP_ROUTE, "vision", "digits")["status"]["parents"][0]
    assert {item["type"]: item["status"] for item in parent["conditions"]} == {
        "Accepted": "True",
        "ResolvedRefs": "True",
    }
    wait_for("the surplus pod is gone", lambda: len(cluster.pods("one")) == 1)


def test_a_killed_triton_restarts_with_its_files(cluster: Running) -> None:
    _create(cluster, "phoenix", "bare")
    cluster.wait_until_ready("phoenix")
    pod = cluster.pods("phoenix")[0]
    directory = cluster.data_dir / "pods" / directory_name(pod)
    model = next(directory.glob("volumes/*/magika/1/model.onnx"))
    fetched_at = model.stat().st_mtime_ns

    os.kill(_pid(directory), signal.SIGKILL)
    restarted = wait_for("restarted", lambda: _restarted(cluster, "phoenix"))
    cluster.wait_until_ready("phoenix")

    status = restarted["status"]["containerStatuses"][0]
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 137
    assert model.stat().st_mtime_ns == fetched_at
    host, port = cluster.local_pods.pod_address("vision", pod["metadata"]["name"], 8080)
    tensor = {"name": "bytes", "shape": [1, 2048], "datatype": "INT32", "data": [35] * 2048}
    response = plain_http.client.post(
        f"http://{host}:{port}/v2/models/magika/infer", json={"inputs": [tensor]}
    )
    assert response.status_code == 200
    assert response.json()["outputs"][0]["shape"] == [1, 214]
    metrics_port = cluster.local_pods.pod_address("vision", pod["metadata"]["name"], 8002)[1]

    def counted() -> str | None:
        """Triton counts a request after it has answered it. One more is that of the readiness check."""
        text = plain_http.client.get(f"http://127.0.0.1:{metrics_port}/metrics").text
        return (
            text if 'nv_inference_request_success{model="magika",version="1"} 2' in text else None
        )

    metrics = wait_for("both requests are counted", counted)
    assert "nv_inference_request_summary_us" not in metrics
    assert "--model-repository" not in cluster.log_of(pod)
    cluster.delete("phoenix")


def _pid(directory: Path) -> int:
    import json

    return int(json.loads((directory / "kserve-container.pid").read_text())["pid"])


def _restarted(cluster: Running, name: str) -> dict | None:  # type: ignore[type-arg]
    pod = cluster.pods(name)[0]
    status = pod["status"]["containerStatuses"][0]
    return pod if status["restartCount"] and "running" in status["state"] else None


@pytest.mark.skipif(
    sys.version_info >= (3, 13),
    reason="NumPy 2 and Triton's Python backend share no string tensors; the model is refused",
)
def test_a_model_without_config_serves_strings(cluster: Running) -> None:
    _create(cluster, "echo", "text")
    cluster.wait_until_ready("echo")
    name = cluster.pods("echo")[0]["metadata"]["name"]
    host, port = cluster.local_pods.pod_address("vision", name, 8080)

    tensor = {"name": "x", "shape": [2, 1], "datatype": "BYTES", "data": ["grün", "blau"]}
    response = plain_http.client.post(
        f"http://{host}:{port}/v2/models/echo/infer", json={"inputs": [tensor]}
    )

    assert response.status_code == 200, response.text
    assert response.json()["outputs"][0]["data"] == ["grün", "blau"]
    cluster.delete("echo")


def test_model_that_refuses_the_guessed_size_of_the_check_becomes_ready(cluster: Running) -> None:
    _create(cluster, "lengths", "lengths")
    cluster.wait_until_ready("lengths")
    pod = cluster.pods("lengths")[0]
    host, port = cluster.local_pods.pod_address("vision", pod["metadata"]["name"], 8080)

    tensor = {"name": "x", "shape": [1, 1, 6], "datatype": "FP32", "data": [1, 2, 3, 4, 5, 6]}
    response = plain_http.client.post(
        f"http://{host}:{port}/v2/models/sums/infer", json={"inputs": [tensor]}
    )

    assert answer_of(response) == [15.0, 20.0]
    assert "guess was refused" in cluster.log_of(pod)
    assert pod["status"]["containerStatuses"][0]["restartCount"] == 0
    cluster.delete("lengths")


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        ("broken", "failed to load 'adder' version 1"),
        ("mismatched", "The model adder was loaded but does not answer (500)"),
        ("plan", "unable to find backend library for backend 'tensorrt'"),
        ("absent", "No model found in s3://models/absent/"),
    ],
)
def test_a_failed_load_is_reported_with_its_cause(
    cluster: Running, prefix: str, message: str
) -> None:
    name = f"fails-{prefix}"
    _create(cluster, name, prefix)

    def failed_model() -> dict | None:  # type: ignore[type-arg]
        status = cluster.service(name).get("status") or {}
        model = status.get("modelStatus") or {}
        return model if model.get("transitionStatus") == "BlockedByFailedLoad" else None

    model = wait_for("failed to load", failed_model)

    assert model["states"]["targetModelState"] == "FailedToLoad"
    assert model["copies"] == {"failedCopies": 1, "totalCopies": 1}
    assert model["lastFailureInfo"]["reason"] == "ModelLoadFailed"
    assert message in model["lastFailureInfo"]["message"]
    cluster.delete(name)


def test_an_unschedulable_pod_reports_the_reason(cluster: Running) -> None:
    _create(cluster, "huge", "one", gpus=8)

    pod = wait_for(
        "conditions of the pod",
        lambda: next(
            (pod for pod in cluster.pods("huge") if pod["status"].get("conditions")), None
        ),
    )

    scheduled = pod["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "False")
    assert scheduled["reason"] == "Unschedulable"
    assert scheduled["message"] == "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
    reasons = {event["reason"]: event["message"] for event in cluster.store.list(EVENT, "vision")}
    assert reasons["FailedScheduling"] == scheduled["message"]
    assert cluster.service("huge")["status"]["modelStatus"]["transitionStatus"] == "InProgress"
    cluster.delete("huge")


def test_deleting_a_service_removes_its_processes_files_and_objects(cluster: Running) -> None:
    _create(cluster, "brief", "one")
    cluster.wait_until_ready("brief")
    directory = cluster.data_dir / "pods" / directory_name(cluster.pods("brief")[0])
    pid = _pid(directory)

    cluster.delete("brief")

    assert not Path(f"/proc/{pid}").exists()
    assert not directory.exists()
    assert cluster.store.find(DEPLOYMENT, "vision", "brief-predictor") is None
    assert cluster.store.find(SERVICE, "vision", "brief-predictor") is None


def test_unknown_runtime_is_an_invalid_spec(cluster: Running) -> None:
    _create(cluster, "lost", "one", runtime="nobody")

    def model_status() -> dict | None:  # type: ignore[type-arg]
        return (cluster.service("lost").get("status") or {}).get("modelStatus")

    status = wait_for("status of the model", model_status)

    assert status["transitionStatus"] == "InvalidSpec"
    assert status["lastFailureInfo"]["reason"] == "RuntimeNotRecognized"
    assert cluster.store.find(DEPLOYMENT, "vision", "lost-predictor") is None
    cluster.delete("lost")
