"""Language models as the portal deploys them, on a running cluster."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from typing import Any

from prometheus_client.parser import text_string_to_metric_families

from deployments.manifests.domain import http_route, revision
from deployments.manifests.domain.metadata import ManifestContext, ServedFile, ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster.controllers import conditions
from slipway_localcluster.kinds import HTTP_ROUTE, INFERENCE_SERVICE, SERVING_RUNTIME
from tests import plain_http
from tests.localcluster.controllers.running import Running
from tests.waiting import wait_for

MODEL = "chat"
CONTEXT = ManifestContext(
    team="vision",
    namespace="vision",
    deployment="chat",
    deployment_id=7,
    is_local_cluster=True,
    gateway_namespace="slipway-gateway",
    gateway_name="slipway",
    triton_image="nvcr.io/nvidia/tritonserver:26.07-py3",
    storage_image="kserve/storage-initializer:v0.20.0",
    vllm_image="vllm/vllm-openai:v0.11.0",
    sglang_image="lmsysorg/sglang:v0.5.23",
)


@dataclass(frozen=True, slots=True)
class Event:
    """One event of a stream and when it arrived."""

    at: float
    data: str

    @property
    def text(self) -> str:
        return str(json.loads(self.data)["choices"][0]["delta"]["content"])


def spec(engine: str = "kserve-vllm", **llm: Any) -> ServingSpec:
    data = {
        "engine": engine,
        "instance_type": "g5.xlarge",
        "llm": {"hugging_face_id": "org/model", **llm},
    }
    return ServingSpec.from_json(data)


def deploy(
    cluster: Running,
    number: int,
    serving_spec: ServingSpec,
    *,
    uri: str = "s3://b/p/",
    files: tuple[ServedFile, ...] = (),
) -> None:
    """`uri` and `files` are those of an uploaded version."""
    served = ServedRevision(
        number, MODEL, f"chat:{number}", "ab" * 32, uri, serving_spec, files=files
    )
    for manifest in revision.build_shared(CONTEXT, served):
        name = manifest["metadata"]["name"]
        is_runtime = manifest["kind"] == "ServingRuntime"
        if is_runtime and cluster.store.find(SERVING_RUNTIME, "vision", name) is None:
            cluster.store.create(SERVING_RUNTIME, manifest)
    workload = revision.build_own(CONTEXT, served)[0]
    cluster.store.create(INFERENCE_SERVICE, workload)
    name = workload["metadata"]["name"]
    wait_for(f"{name} is ready", lambda: conditions.is_true(cluster.service(name), "Ready"))


def route(cluster: Running, weights: dict[int, int]) -> None:
    """The portal's route, followed by the gateway."""
    backends = [
        http_route.backend_for(number, spec(), weight, model=MODEL)
        for number, weight in weights.items()
    ]
    manifest = http_route.http_route(CONTEXT, backends)
    live = cluster.store.find(HTTP_ROUTE, "vision", "chat")
    if live is None:
        cluster.store.create(HTTP_ROUTE, manifest)
    else:
        cluster.store.replace(HTTP_ROUTE, {**live, "spec": manifest["spec"]})

    def is_followed() -> bool:
        live = cluster.store.get(HTTP_ROUTE, "vision", "chat")
        conditions_of_parents = [
            condition
            for parent in (live.get("status") or {}).get("parents") or ()
            for condition in parent["conditions"]
        ]
        generation = live["metadata"]["generation"]
        return any(item["observedGeneration"] == generation for item in conditions_of_parents)

    wait_for("the gateway follows the route", is_followed)
    wait_for("the gateway answers", lambda: get(cluster, "/v1/models") == 200)


def model_names(cluster: Running) -> list[str]:
    answer = plain_http.client.get(cluster.url("/vision/chat/v1/models"), timeout=10)
    return [model["id"] for model in answer.json()["data"]]


def get(cluster: Running, path: str) -> int:
    return plain_http.client.get(cluster.url(f"/vision/chat{path}"), timeout=10).status_code


def chat(cluster: Running, **body: Any) -> Any:
    answer = plain_http.client.post(
        cluster.url("/vision/chat/v1/chat/completions"), json=chat_body(**body), timeout=30
    )
    assert answer.status_code == 200, answer.text
    return answer.json()


def chat_body(**body: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "Hello"}]
    # Chosen at random, one token in a hundred would end the answer.
    return {"model": MODEL, "messages": messages, "max_tokens": 4, "temperature": 0, **body}


def stream(cluster: Running, **body: Any) -> list[Event]:
    url = cluster.url("/vision/chat/v1/chat/completions")
    sent = chat_body(stream=True, **body)
    events: list[Event] = []
    with plain_http.client.stream("POST", url, json=sent, timeout=30) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        events.extend(
            Event(time.monotonic(), line.removeprefix("data: "))
            for line in response.iter_lines()
            if line
        )
    return events


def metrics_text(cluster: Running, number: int) -> str:
    """Of the revision's only pod."""
    (pod,) = [pod for pod in cluster.pods(f"chat-r{number}") if conditions.is_true(pod, "Ready")]
    host, port = cluster.local_pods.pod_address("vision", pod["metadata"]["name"], 8080)
    return plain_http.client.get(f"http://{host}:{port}/metrics", timeout=10).text


def metrics(cluster: Running, number: int) -> dict[str, float]:
    """The samples of the revision's only pod, summed over labels, by name."""
    sums: dict[str, float] = {}
    for family in text_string_to_metric_families(metrics_text(cluster, number)):
        for sample in family.samples:
            sums[sample.name] = sums.get(sample.name, 0) + sample.value
    return sums


def logs(cluster: Running, number: int, container: str) -> str:
    (pod,) = cluster.pods(f"chat-r{number}")
    return cluster.log_of(pod, container)
