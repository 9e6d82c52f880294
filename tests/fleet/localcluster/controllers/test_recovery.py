"""The whole cluster in its own process: a plain Deployment, SIGKILL, restart, SIGTERM."""

import base64
import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from fleet.localcluster.controllers.processes import free_ports
from fleet.localcluster.controllers.storage import S3Settings
from tests import plain_http
from tests.fleet.localcluster.controllers import manifests
from tests.fleet.localcluster.controllers.running import answer_of, eventually, pair

pytestmark = pytest.mark.timeout(180)

_ROOT = Path(__file__).parents[4]


def _start(data_dir: Path, gateway_port: int, s3: S3Settings) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fleet.localcluster", "--data-dir", str(data_dir)]
    command += ["--port", "0", "--gateway-port", str(gateway_port), "--own-envoy"]
    process = subprocess.Popen(
        [*command, "--s3-endpoint", str(s3.endpoint_url)],
        cwd=_ROOT,
        env={**os.environ, "AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert "ready" in process.stdout.readline()
    return process


def _client(data_dir: Path) -> httpx.Client:
    config = json.loads((data_dir / "kubeconfig").read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.Client(
        base_url=cluster["server"],
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=ssl.create_default_context(cadata=authority),
    )


def _deployment() -> dict[str, Any]:
    mount = {"name": "models", "mountPath": "/mnt/models"}
    limits = {"nvidia.com/gpu": "1", "cpu": "1", "memory": "1Gi"}
    pod = {
        "tolerations": [manifests.GPU_TOLERATION],
        "initContainers": [
            {
                "name": "storage-initializer",
                "image": "kserve/storage-initializer:v0.20.0",
                "args": ["s3://models/one/", "/mnt/models"],
                "volumeMounts": [mount],
            }
        ],
        "containers": [
            {
                "name": "tritonserver",
                "image": "nvcr.io/nvidia/tritonserver:26.07-py3",
                "args": ["tritonserver", "--model-repository=/mnt/models", "--http-port=8080"],
                "ports": [{"containerPort": 8080, "name": "http"}],
                "volumeMounts": [mount],
                "resources": {"limits": limits, "requests": limits},
            }
        ],
        "volumes": [{"name": "models", "emptyDir": {}}],
    }
    labels = {"app": "one"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "one"},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _write(client: httpx.Client) -> None:
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "one-predictor"},
        "spec": {"selector": {"app": "one"}, "ports": [{"port": 80, "targetPort": "http"}]},
    }
    route = {"apiVersion": "gateway.networking.k8s.io/v1", "kind": "HTTPRoute"}
    route |= manifests.route({"one": 1})
    for path, body in (
        ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", **manifests.namespace()}),
        ("/apis/apps/v1/namespaces/vision/deployments", _deployment()),
        ("/api/v1/namespaces/vision/services", service),
        ("/apis/gateway.networking.k8s.io/v1/namespaces/vision/httproutes", route),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text


def _ready_pod(client: httpx.Client, restarts: int) -> dict[str, Any] | None:
    for pod in client.get("/api/v1/namespaces/vision/pods").json()["items"]:
        for status in pod["status"].get("containerStatuses") or ():
            if status["ready"] and status["restartCount"] == restarts:
                return dict(pod)
    return None


def _pids(data_dir: Path) -> list[int]:
    records = [*data_dir.glob("pods/*/*.pid"), data_dir / "envoy" / "envoy.pid"]
    return [int(json.loads(path.read_text())["pid"]) for path in records]


def _is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


def _is_answering(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/vision/digits/v2/models/adder/infer"
    try:
        response = plain_http.client.post(url, json=pair(1, 2))
    except httpx.TransportError:
        return False
    return response.status_code == 200 and answer_of(response) == [2.0, 3.0]


def test_a_restart_after_sigkill_ends_old_processes_and_serves_the_same_pods(
    tmp_path: Path, s3: S3Settings
) -> None:
    gateway_port = free_ports(1)[0]
    process = _start(tmp_path, gateway_port, s3)
    with _client(tmp_path) as client:
        _write(client)
        first = eventually(lambda: _ready_pod(client, 0), what="ready")
        eventually(lambda: _is_answering(gateway_port), what="answers")
        orphans = _pids(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    assert all(_is_running(pid) for pid in orphans)

    process = _start(tmp_path, gateway_port, s3)
    assert not any(_is_running(pid) for pid in orphans)
    with _client(tmp_path) as client:
        second = eventually(lambda: _ready_pod(client, 1), what="ready again")
        eventually(lambda: _is_answering(gateway_port), what="answers again")
        current = _pids(tmp_path)
        name = second["metadata"]["name"]
        metrics = client.get(f"/api/v1/namespaces/vision/pods/{name}:8002/proxy/metrics")
        log = client.get(f"/api/v1/namespaces/vision/pods/{name}/log")
    process.terminate()
    started = time.monotonic()
    process.wait(timeout=15)

    assert time.monotonic() - started < 10
    assert not any(_is_running(pid) for pid in current)
    assert first["metadata"]["uid"] == second["metadata"]["uid"]
    last = second["status"]["containerStatuses"][0]["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (255, "Unknown")
    assert "nv_inference_request_success" in metrics.text
    assert "successfully loaded 'adder'" in log.text
    assert process.stdout is not None
    process.stdout.close()
