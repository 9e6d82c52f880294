"""Streams of a language model that are open while its pods end."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import httpx

from deployments.manifests.domain import http_route, revision
from deployments.manifests.domain.metadata import ServedRevision
from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster import evictions
from slipway_localcluster.controllers import conditions
from slipway_localcluster.kinds import HTTP_ROUTE, INFERENCE_SERVICE, PDB, POD, SERVING_RUNTIME
from slipway_localcluster.writes import Target, WriteOptions, Writer
from tests import plain_http
from tests.localcluster.controllers import language_models
from tests.localcluster.controllers.running import Running
from tests.waiting import wait_for


@dataclass(frozen=True, slots=True)
class Ended:
    """`reason` is the one that the last token names; "cut" where the stream ended without its end."""

    tokens: int
    reason: str


@dataclass(frozen=True, slots=True)
class Model:
    """A deployment of its own at the gateway; `specs` by revision number."""

    cluster: Running
    name: str
    vllm_image: str = "vllm/vllm-openai:v0.32.0"

    def deploy(self, number: int, spec: ServingSpec) -> None:
        served = ServedRevision(
            number, self.name, f"{self.name}:{number}", "ab" * 32, "s3://b/p/", spec
        )
        store = self.cluster.store
        for manifest in revision.build_shared(self._context, served):
            name = manifest["metadata"]["name"]
            is_runtime = manifest["kind"] == "ServingRuntime"
            if is_runtime and store.find(SERVING_RUNTIME, "vision", name) is None:
                store.create(SERVING_RUNTIME, manifest)
        own = {manifest["kind"]: manifest for manifest in revision.build_own(self._context, served)}
        store.create(INFERENCE_SERVICE, own["InferenceService"])
        store.create(PDB, own["PodDisruptionBudget"])
        wait_for(
            f"{self.workload(number)} is ready",
            lambda: len(self.ready_pods(number)) == spec.min_replicas,
        )

    def route(self, weights: dict[int, int], spec: ServingSpec) -> None:
        backends = [
            http_route.backend_for(number, spec, weight, model=self.name)
            for number, weight in weights.items()
        ]
        manifest = http_route.http_route(self._context, backends)
        store = self.cluster.store
        live = store.find(HTTP_ROUTE, "vision", self.name)
        if live is None:
            store.create(HTTP_ROUTE, manifest)
        else:
            store.replace(HTTP_ROUTE, {**live, "spec": manifest["spec"]})
        wait_for("the gateway follows the route", self._is_followed)
        wait_for("the gateway answers", lambda: self._get("/v1/models") == 200)

    def _is_followed(self) -> bool:
        live = self.cluster.store.get(HTTP_ROUTE, "vision", self.name)
        parents = (live.get("status") or {}).get("parents") or ()
        generation = live["metadata"]["generation"]
        return any(
            condition["observedGeneration"] == generation
            for parent in parents
            for condition in parent["conditions"]
        )

    def _get(self, path: str) -> int:
        return plain_http.client.get(self._url(path), timeout=10).status_code

    def _url(self, path: str) -> str:
        return self.cluster.url(f"/vision/{self.name}{path}")

    @property
    def _context(self) -> Any:
        context = language_models.CONTEXT
        return replace(context, deployment=self.name, vllm_image=self.vllm_image)

    def workload(self, number: int) -> str:
        return f"{self.name}-r{number}"

    def ready_pods(self, number: int) -> list[dict[str, Any]]:
        pods = self.cluster.pods(self.workload(number))
        return [
            pod
            for pod in pods
            if conditions.is_true(pod, "Ready") and "deletionTimestamp" not in pod["metadata"]
        ]

    def generate(self, tokens: int) -> Ended:
        """One streamed completion at the gateway, read to its end."""
        body = {
            "model": self.name,
            "prompt": "Hello",
            "max_tokens": tokens,
            "temperature": 0,
            "stream": True,
        }
        count, reason = 0, "cut"
        try:
            with plain_http.client.stream(
                "POST", self._url("/v1/completions"), json=body, timeout=60
            ) as answer:
                for line in answer.iter_lines():
                    if line and not line.endswith("[DONE]"):
                        choice = json.loads(line.removeprefix("data: "))["choices"][0]
                        reason = choice["finish_reason"] or "cut"
                        count += bool(choice["text"])
        except (httpx.HTTPError, KeyError, ValueError):
            return Ended(count, "cut")
        return Ended(count, reason)

    def running(self, number: int) -> list[float]:
        """Requests that run in each ready pod."""
        counts = []
        for pod in self.ready_pods(number):
            name = pod["metadata"]["name"]
            host, port = self.cluster.local_pods.pod_address("vision", name, 8080)
            page = plain_http.client.get(f"http://{host}:{port}/metrics", timeout=10).text
            lines = [
                line
                for line in page.splitlines()
                if line.startswith(("vllm:num_requests_running", "sglang:num_running_reqs"))
            ]
            counts.append(sum(float(line.split()[-1]) for line in lines))
        return counts

    def open_streams(
        self, pool: ThreadPoolExecutor, number: int, tokens: int
    ) -> list[Future[Ended]]:
        """Until every pod runs one."""
        opened: list[Future[Ended]] = []

        def reach_all() -> bool:
            if not all(self.running(number)):
                opened.append(pool.submit(self.generate, tokens))
                return False
            return True

        wait_for("every pod runs a stream", reach_all)
        return opened

    def step(self, spec: ServingSpec) -> None:
        """The last step of a rollout: all traffic to the new revision, then the old one is deleted."""
        self.deploy(2, spec.replace(min_replicas=1, max_replicas=1))
        self.route({1: 0, 2: 100}, spec)
        self.cluster.store.delete(INFERENCE_SERVICE, "vision", self.workload(1))

    def scale_in(self) -> None:
        store = self.cluster.store
        service = store.get(INFERENCE_SERVICE, "vision", self.workload(1))
        service["spec"]["predictor"]["minReplicas"] = 1
        store.replace(INFERENCE_SERVICE, service)

    def drain(self) -> None:
        """As `kubectl drain` of a node evicts its pods."""
        (pod, *_) = self.ready_pods(1)
        store = self.cluster.store
        target = Target(POD, "vision", pod["metadata"]["name"], "eviction")
        evictions.evict(store, Writer(store), target, WriteOptions("test"))

    def remove(self) -> None:
        for number in (1, 2):
            store = self.cluster.store
            if store.find(INFERENCE_SERVICE, "vision", self.workload(number)) is not None:
                store.delete(INFERENCE_SERVICE, "vision", self.workload(number))
