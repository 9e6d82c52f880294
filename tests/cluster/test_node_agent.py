"""The node agent as a client of a real API server: what it gives the processes of its pods."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

from fleet.localcluster.controllers.nodes import SIMULATED
from tests.cluster.kubectl import Kubectl
from tests.cluster.test_journey import Agents, agents
from tests.cluster.waiting import wait_until

__all__ = ["agents"]


def _pod(namespace: str) -> dict[str, Any]:
    reference = {"name": "keys", "key": "token"}
    env: list[dict[str, Any]] = [
        {"name": "TOKEN", "valueFrom": {"secretKeyRef": reference}},
        {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
    ]
    container = {
        "name": "triton",
        "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
        "command": ["tritonserver"],
        "args": ["--model-repository=/models"],
        "env": env,
        "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "ALL_"}],
        "volumeMounts": [{"name": "models", "mountPath": "/models"}],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "env", "namespace": namespace},
        "spec": {
            "nodeName": SIMULATED[0].name,
            "containers": [container],
            "volumes": [{"name": "models", "emptyDir": {}}],
        },
    }


def _object(kind: str, namespace: str, name: str, **data: str) -> dict[str, Any]:
    field = "stringData" if kind == "Secret" else "data"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: data}


def test_a_process_gets_the_values_of_secrets_config_maps_and_its_pod(
    agents: Agents, namespace: str, admin: Kubectl, tmp_path: Path
) -> None:
    where = f"--namespace={namespace}"
    admin.apply([_object("ConfigMap", namespace, "settings", mode="fast"), _pod(namespace)])

    def state() -> dict[str, Any]:
        statuses = admin.get("pod", "env", where)["status"].get("containerStatuses")
        return statuses[0]["state"] if statuses else {}

    def why() -> str:
        return f"{state()} {admin.run('get', 'events', where)} {agents.log.read_text()[-2000:]}"

    wait_until(lambda: "CreateContainerConfigError" in str(state()), why)
    assert state()["waiting"]["message"] == 'secret "keys" not found'

    admin.apply([_object("Secret", namespace, "keys", token="hunter2")])
    wait_until(lambda: "TOKEN" in _environment(tmp_path), why)

    environment = _environment(tmp_path)
    address = admin.get("pod", "env", where)["status"]["podIP"]
    expected = {
        "TOKEN": "hunter2",
        "MODE": "fast",
        "POD": "env",
        "ADDRESS": address,
        "ALL_mode": "fast",
    }
    assert {name: environment.get(name) for name in expected} == expected


def _environment(data: Path) -> dict[str, str]:
    """Of the process of the pod; empty while there is none."""
    for record in data.glob("pods/*/triton.pid"):
        with suppress(OSError, ValueError):
            process = json.loads(record.read_text())["pid"]
            text = Path(f"/proc/{process}/environ").read_text()
            return dict(item.split("=", 1) for item in text.split("\0") if item)
    return {}
