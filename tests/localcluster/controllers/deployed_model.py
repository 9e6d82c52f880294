"""One Deployment with Triton behind a Service and an HTTPRoute, written over HTTPS."""

import base64
import json
import os
import ssl
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx

from slipway_localcluster.controllers.storage import S3Settings
from tests import plain_http
from tests.localcluster.controllers import manifests
from tests.localcluster.controllers.running import answer_of, pair

_ROOT = Path(__file__).parents[3]


def start(module: str, data_dir: Path, s3: S3Settings, *options: str) -> subprocess.Popen[str]:
    """Start `python -m MODULE` and wait until it prints that it is ready."""
    command = [sys.executable, "-m", module, "--data-dir", str(data_dir), *options]
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


def client(data_dir: Path) -> httpx.Client:
    config = json.loads((data_dir / "kubeconfig").read_text())
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return httpx.Client(
        base_url=cluster["server"],
        headers={"Authorization": f"Bearer {config['users'][0]['user']['token']}"},
        verify=ssl.create_default_context(cadata=authority),
    )


def deployment() -> dict[str, Any]:
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


def write(client: httpx.Client) -> None:
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
        ("/apis/apps/v1/namespaces/vision/deployments", deployment()),
        ("/api/v1/namespaces/vision/services", service),
        ("/apis/gateway.networking.k8s.io/v1/namespaces/vision/httproutes", route),
    ):
        answer = client.post(path, json=body)
        assert answer.status_code == 201, answer.text


def ready_pod(client: httpx.Client, restarts: int) -> dict[str, Any] | None:
    for pod in client.get("/api/v1/namespaces/vision/pods").json()["items"]:
        for status in pod["status"].get("containerStatuses") or ():
            if status["ready"] and status["restartCount"] == restarts:
                return dict(pod)
    return None


def is_answering(port: int) -> bool:
    url = f"http://127.0.0.1:{port}/vision/digits/v2/models/adder/infer"
    try:
        response = plain_http.client.post(url, json=pair(1, 2))
    except httpx.TransportError:
        return False
    return response.status_code == 200 and answer_of(response) == [2.0, 3.0]
