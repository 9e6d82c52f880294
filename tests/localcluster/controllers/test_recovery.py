"""The whole cluster in its own process: a plain Deployment, SIGKILL, restart, SIGTERM."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.storage import S3Settings
from tests.localcluster.controllers import deployed_model
from tests.waiting import wait_for

_MODULE = "slipway_localcluster"
Start = Callable[..., subprocess.Popen[str]]


def _pids(data_dir: Path) -> list[int]:
    records = [*data_dir.glob("pods/*/*.pid"), data_dir / "envoy" / "envoy.pid"]
    return [int(json.loads(path.read_text())["pid"]) for path in records]


def _envoy_pid(data_dir: Path) -> int:
    """0 while it is being started."""
    record = data_dir / "envoy" / "envoy.pid"
    text = record.read_text() if record.is_file() else ""
    return int(json.loads(text)["pid"]) if text else 0


def _is_running(pid: int) -> bool:
    return Path(f"/proc/{pid}/exe").exists()


@pytest.fixture
def start(tmp_path: Path, s3: S3Settings) -> Iterator[Start]:
    """Starts the cluster; what it started ends with the test, also with a failing one."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> subprocess.Popen[str]:
        started.append(deployed_model.start(_MODULE, tmp_path, s3, *options))
        return started[-1]

    yield start
    for process in started:
        if process.poll() is None:
            process.terminate()
            process.wait(timeout=15)


def test_a_restart_after_sigkill_ends_old_processes_and_serves_the_same_pods(
    tmp_path: Path, start: Start
) -> None:
    gateway_port = free_ports.take_one()
    options = ("--port", "0", "--gateway-port", str(gateway_port), "--own-envoy")
    process = start(*options)
    with deployed_model.client(tmp_path) as client:
        deployed_model.write(client)
        first = wait_for("ready", lambda: deployed_model.ready_pod(client, 0))
        wait_for("answers", lambda: deployed_model.is_answering(gateway_port))
        envoy = _envoy_pid(tmp_path)
        os.kill(envoy, signal.SIGKILL)
        wait_for("Envoy is started again", lambda: _envoy_pid(tmp_path) not in (0, envoy))
        wait_for("answers once more", lambda: deployed_model.is_answering(gateway_port))
        orphans = _pids(tmp_path)
    process.send_signal(signal.SIGKILL)
    process.wait(timeout=10)
    assert all(_is_running(pid) for pid in orphans)

    process = start(*options)
    assert not any(_is_running(pid) for pid in orphans)
    with deployed_model.client(tmp_path) as client:
        second = wait_for("ready again", lambda: deployed_model.ready_pod(client, 1))
        wait_for("answers again", lambda: deployed_model.is_answering(gateway_port))
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
