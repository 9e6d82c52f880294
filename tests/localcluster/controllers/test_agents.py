"""Node agent and gateway in a process of their own, as clients of the API server over HTTPS."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.storage import S3Settings
from tests.localcluster.controllers import deployed_model
from tests.waiting import wait_for

_LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/local-t4-1"
_PODS = "/api/v1/namespaces/vision/pods"


@pytest.fixture
def api_server(tmp_path: Path, s3: S3Settings) -> Iterator[subprocess.Popen[str]]:
    process = deployed_model.start(
        "slipway_localcluster", tmp_path, s3, "--port", "0", "--no-agents"
    )
    yield process
    _stop(process)


def _start_agents(data_dir: Path, s3: S3Settings, gateway_port: int) -> subprocess.Popen[str]:
    options = ("--gateway-port", str(gateway_port), "--own-envoy")
    kubeconfig = ("--kubeconfig", str(data_dir / "kubeconfig"))
    return deployed_model.start(
        "slipway_localcluster.run_agents", data_dir, s3, *kubeconfig, *options
    )


def _stop(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(timeout=20)
    if process.stdout is not None:
        process.stdout.close()


def test_a_scheduled_pod_is_served_survives_a_killed_agent_and_ends_gracefully(
    tmp_path: Path, s3: S3Settings, api_server: subprocess.Popen[str]
) -> None:
    gateway_port = free_ports.take_one()
    agents = _start_agents(tmp_path, s3, gateway_port)
    with deployed_model.client(tmp_path) as client:
        deployed_model.write(client)
        pod = wait_for("ready", lambda: deployed_model.ready_pod(client, 0))
        wait_for("answers", lambda: deployed_model.is_answering(gateway_port))
        name = pod["metadata"]["name"]
        log = client.get(f"{_PODS}/{name}/log").text
        metrics = client.get(f"{_PODS}/{name}:8002/proxy/metrics").text
        first_renewal = client.get(_LEASE).json()["spec"]["renewTime"]

        agents.send_signal(signal.SIGKILL)
        agents.wait(timeout=10)
        agents = _start_agents(tmp_path, s3, gateway_port)
        again = wait_for("restart", lambda: deployed_model.ready_pod(client, 1))
        wait_for("answers again", lambda: deployed_model.is_answering(gateway_port))

        client.delete("/apis/apps/v1/namespaces/vision/deployments/one")
        deleted = wait_for("the pod is being deleted", lambda: _deleted_pod(client))
        wait_for("the pod is removed", lambda: not client.get(_PODS).json()["items"])
        renewal = client.get(_LEASE).json()["spec"]["renewTime"]
    started = time.monotonic()
    _stop(agents)

    assert "successfully loaded 'adder'" in log
    assert "nv_inference_request_success" in metrics
    assert again["metadata"]["uid"] == pod["metadata"]["uid"]
    assert deleted["metadata"]["deletionGracePeriodSeconds"] == 30
    assert renewal > first_renewal
    assert not list(tmp_path.glob("pods/*"))
    assert time.monotonic() - started < 10


def _deleted_pod(client: Any) -> dict[str, Any] | None:
    items = client.get(_PODS).json()["items"]
    return next((item for item in items if "deletionTimestamp" in item["metadata"]), None)


def test_agents_without_an_api_server_exit_with_its_address(tmp_path: Path) -> None:
    port = free_ports.take_one()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://127.0.0.1:{port}"}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
    }
    (tmp_path / "kubeconfig").write_text(json.dumps(config))
    command = [sys.executable, "-m", "slipway_localcluster.run_agents", "--data-dir", str(tmp_path)]

    done = subprocess.run(
        [*command, "--kubeconfig", str(tmp_path / "kubeconfig")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert f"https://127.0.0.1:{port}/" in done.stderr
