"""Handles on a running cluster; waiting is bounded polling of real processes."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import httpx

from fleet.localcluster.controllers import conditions
from fleet.localcluster.controllers.manager import ControllerManager
from fleet.localcluster.kinds import INFERENCE_SERVICE, POD
from fleet.localcluster.store import Store

BUCKET = "models"


T = TypeVar("T")


def eventually(look: Callable[[], T | None], *, seconds: float = 40, what: str = "") -> T:
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"not seen within {seconds} s: {what}"
        time.sleep(0.1)


@dataclass
class Running:
    store: Store
    manager: ControllerManager
    data_dir: Path
    gateway_port: int

    def pods(self, service: str) -> list[dict[str, Any]]:
        labels = {"serving.kserve.io/inferenceservice": service}
        return self.store.list(POD, "vision", labels)

    def service(self, name: str) -> dict[str, Any]:
        return self.store.get(INFERENCE_SERVICE, "vision", name)

    def wait_until_ready(self, name: str) -> dict[str, Any]:
        def look() -> dict[str, Any] | None:
            found = self.service(name)
            is_loaded = (found.get("status") or {}).get("modelStatus", {}).get(
                "transitionStatus"
            ) == "UpToDate"
            return found if is_loaded and conditions.is_true(found, "Ready") else None

        return eventually(look, what=f"{name} is ready")

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.gateway_port}{path}"

    def delete(self, name: str) -> None:
        self.store.delete(INFERENCE_SERVICE, "vision", name)
        eventually(lambda: not self.pods(name), what=f"pods of {name} are gone")


def pair(first: float, second: float) -> dict[str, Any]:
    tensor = {"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [first, second]}
    return {"inputs": [tensor]}


def answer_of(response: httpx.Response) -> list[float]:
    return list(response.json()["outputs"][0]["data"])
