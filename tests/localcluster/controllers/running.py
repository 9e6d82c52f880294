"""Access to a running cluster."""

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from slipway_localcluster.controllers import conditions
from slipway_localcluster.controllers.local_pods import LocalPods
from slipway_localcluster.kinds import INFERENCE_SERVICE, POD
from slipway_localcluster.store import Store
from tests.waiting import wait_for

BUCKET = "models"


@dataclass
class Running:
    store: Store
    local_pods: LocalPods
    data_dir: Path
    gateway_port: int

    def pods(self, service: str) -> list[dict[str, Any]]:
        labels = {"serving.kserve.io/inferenceservice": service}
        return self.store.list(POD, "vision", labels)

    def service(self, name: str) -> dict[str, Any]:
        return self.store.get(INFERENCE_SERVICE, "vision", name)

    def wait_until_ready(self, name: str) -> dict[str, Any]:
        def loaded_service() -> dict[str, Any] | None:
            service = self.service(name)
            is_loaded = (service.get("status") or {}).get("modelStatus", {}).get(
                "transitionStatus"
            ) == "UpToDate"
            return service if is_loaded and conditions.is_true(service, "Ready") else None

        return wait_for(f"{name} is ready", loaded_service)

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.gateway_port}{path}"

    def log_of(self, pod: dict[str, Any], container: str | None = None) -> str:
        name = pod["metadata"]["name"]
        with closing(self.local_pods.open_log("vision", name, container=container)) as log:
            return "".join(line.text for line in log.lines())

    def delete(self, name: str) -> None:
        self.store.delete(INFERENCE_SERVICE, "vision", name)
        wait_for(f"pods of {name} are gone", lambda: not self.pods(name))


def pair(first: float, second: float) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [first, second]}
    return {"inputs": [tensor]}


def answer_of(response: httpx.Response) -> list[float]:
    return list(response.json()["outputs"][0]["data"])
