"""The node agent as a client of a real API server: what it gives the processes of its pods."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from fleet.kube.domain.errors import ClusterError
from fleet.kube.services import objects
from slipway_localcluster.controllers.nodes import SIMULATED
from tests.cluster.agents import Agents, agents
from tests.cluster.kubectl import Kubectl
from tests.cluster.waiting import wait_until

__all__ = ["agents"]


_POD = "one"
_STARTED = "Started HTTPService"


def _pod(namespace: str, **container: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": _POD, "namespace": namespace},
        "spec": {
            "nodeName": SIMULATED[0].name,
            "containers": [
                {
                    "name": "triton",
                    "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
                    "command": ["tritonserver"],
                    "args": ["--model-repository=/models"],
                    "volumeMounts": [{"name": "models", "mountPath": "/models"}],
                    **container,
                }
            ],
            "volumes": [{"name": "models", "emptyDir": {}}],
        },
    }


def _references() -> dict[str, Any]:
    return {
        "env": [
            {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "keys", "key": "token"}}},
            {"name": "MODE", "valueFrom": {"configMapKeyRef": {"name": "settings", "key": "mode"}}},
            {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        ],
        "envFrom": [{"configMapRef": {"name": "settings"}, "prefix": "ALL_"}],
    }


def _object(kind: str, namespace: str, name: str, **data: str) -> dict[str, Any]:
    field = "stringData" if kind == "Secret" else "data"
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, field: data}


def test_a_process_gets_the_values_of_secrets_config_maps_and_its_pod(
    agents: Agents, namespace: str, admin: Kubectl, tmp_path: Path
) -> None:
    where = f"--namespace={namespace}"
    admin.apply([_object("ConfigMap", namespace, "settings", mode="fast")])
    admin.apply([_pod(namespace, **_references())])

    def state() -> dict[str, Any]:
        statuses = admin.get("pod", _POD, where)["status"].get("containerStatuses")
        return statuses[0]["state"] if statuses else {}

    def why() -> str:
        return f"{state()} {admin.run('get', 'events', where)} {agents.log.read_text()[-2000:]}"

    wait_until(lambda: "CreateContainerConfigError" in str(state()), why)
    assert state()["waiting"]["message"] == 'secret "keys" not found'

    admin.apply([_object("Secret", namespace, "keys", token="hunter2")])
    wait_until(lambda: "TOKEN" in _environment(tmp_path), why)

    environment = _environment(tmp_path)
    address = admin.get("pod", _POD, where)["status"]["podIP"]
    expected = {
        "TOKEN": "hunter2",
        "MODE": "fast",
        "POD": _POD,
        "ADDRESS": address,
        "ALL_mode": "fast",
    }
    assert {name: environment.get(name) for name in expected} == expected


def test_the_log_of_a_pod_is_read_through_the_api_server(
    agents: Agents, cluster_id: int, namespace: str, admin: Kubectl, journey: Callable[[str], None]
) -> None:
    """By the portal with the permissions of its own account, and by kubectl until the pod is gone."""
    where = f"--namespace={namespace}"
    admin.apply([_pod(namespace)])

    def log() -> str:
        with suppress(ClusterError):
            return objects.pod_log(
                cluster_id=cluster_id, namespace=namespace, pod=_POD, tail_lines=5
            )
        return ""

    wait_until(lambda: _STARTED in log(), lambda: log() + agents.log.read_text()[-2000:])
    assert len(log().splitlines()) == 5
    assert admin.run("logs", _POD, where, "--tail=5") == log()
    assert admin.run("logs", _POD, where, "--tail=5", "--limit-bytes=20") == log()[:20]
    dated = admin.run("logs", _POD, where, "--timestamps").splitlines()
    assert [line.partition(" ")[2] for line in dated[-5:]] == log().splitlines()
    times = [datetime.fromisoformat(line.partition(" ")[0]) for line in dated]
    created = admin.get("pod", _POD, where)["metadata"]["creationTimestamp"]
    assert times == sorted(times)
    assert datetime.fromisoformat(created) <= times[0]
    assert times[-1] <= datetime.now(UTC)
    assert admin.run("logs", _POD, where, "--since=1h") == admin.run("logs", _POD, where)
    later = (times[-1] + timedelta(seconds=1)).isoformat()
    assert _STARTED not in admin.run("logs", _POD, where, f"--since-time={later}")
    with pytest.raises(
        AssertionError, match=f'previous terminated container "triton" in pod "{_POD}"'
    ):
        admin.run("logs", _POD, where, "--previous")

    following = admin.command("logs", _POD, where, "--follow")
    with subprocess.Popen(following, stdout=subprocess.PIPE, text=True) as kubectl:
        assert kubectl.stdout is not None
        first = kubectl.stdout.readline()
        admin.run("delete", "pod", _POD, where, "--grace-period=5")
        followed = first + kubectl.stdout.read()
    assert _STARTED in followed
    assert "Signal (15) received" in followed
    journey("kubectl logs and the portal: the log of a pod on the node agent, to its end")


def _environment(data: Path) -> dict[str, str]:
    """Of the process of the pod; empty while there is none."""
    for record in data.glob("pods/*/triton.pid"):
        with suppress(OSError, ValueError):
            process = json.loads(record.read_text())["pid"]
            text = Path(f"/proc/{process}/environ").read_text()
            return dict(item.split("=", 1) for item in text.split("\0") if item)
    return {}
