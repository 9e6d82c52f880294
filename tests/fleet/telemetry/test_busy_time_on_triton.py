"""How long a real Triton with dynamic batching executed, beside what the model measured of each batch."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from fleet.telemetry.domain.counters import Increase, PodReading, increases
from fleet.telemetry.domain.triton_metrics import TritonPage
from portal.core import clock
from slipway_localcluster.controllers.processes import Child
from tests import plain_http
from tests.deployments import real_triton
from tests.waiting import wait_for

_MODEL = """
import time
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def execute(self, requests):
        begun = time.monotonic()
        time.sleep(0.2)
        with open("EXECUTIONS", "a") as file:
            file.write(f"{len(requests)} {(time.monotonic() - begun) * 1000}\\n")
        return [
            pb_utils.InferenceResponse(
                [pb_utils.Tensor("y", pb_utils.get_input_tensor_by_name(request, "x").as_numpy())]
            )
            for request in requests
        ]
"""
_CONFIG = """
name: "slow"
backend: "python"
max_batch_size: 8
input [{ name: "x", data_type: TYPE_FP32, dims: [1] }]
output [{ name: "y", data_type: TYPE_FP32, dims: [1] }]
instance_group [{ count: 1, kind: KIND_CPU }]
dynamic_batching { max_queue_delay_microseconds: 20000 }
"""
_REQUEST = {"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32", "data": [1.0]}]}
_REQUESTS, _AT_ONCE = 64, 12


def _reading(metrics_port: int, seconds: int) -> PodReading:
    text = plain_http.client.get(f"http://127.0.0.1:{metrics_port}/metrics").text
    at = clock.now() + timedelta(seconds=seconds)
    return PodReading(at, TritonPage(text, models=["slow"]).counters)


def _executed(root: Path) -> tuple[float, int]:
    """Milliseconds of all executions, and the largest batch."""
    lines = [line.split() for line in (root / "executions").read_text().splitlines()]
    return sum(float(took) for _, took in lines), max(int(size) for size, _ in lines)


def _answering_metrics_port(child: Child, log: Path) -> int | None:
    """Once it answers: Triton is ready before its metrics are served."""
    text = log.read_text()
    assert child.is_running(), text[-2000:]
    started = re.search(r"Started Metrics Service at \S+:(\d+)", text)
    if started is None:
        return None
    try:
        plain_http.client.get(f"http://127.0.0.1:{started[1]}/metrics")
    except httpx.TransportError:
        return None
    return int(started[1])


def _increase(root: Path) -> Increase:
    child, port = real_triton.start(root)
    try:
        log = root / "log"
        metrics_port = wait_for(log.read_text, lambda: _answering_metrics_port(child, log))
        before = _reading(metrics_port, 0)
        url = f"http://127.0.0.1:{port}/v2/models/slow/infer"
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            statuses = pool.map(
                lambda _: plain_http.client.post(url, json=_REQUEST).status_code, range(_REQUESTS)
            )
            assert set(statuses) == {200}
        [increase] = increases([before, _reading(metrics_port, 60)], ready_at=None)
        return increase
    finally:
        child.kill()


def test_a_batch_of_a_real_triton_is_counted_once(tmp_path: Path) -> None:
    pytest.importorskip("pytriton")
    (tmp_path / "models" / "slow" / "1").mkdir(parents=True)
    (tmp_path / "models" / "slow" / "1" / "model.py").write_text(
        _MODEL.replace("EXECUTIONS", str(tmp_path / "executions"))
    )
    (tmp_path / "models" / "slow" / "config.pbtxt").write_text(_CONFIG)

    increase = _increase(tmp_path)
    executed_ms, largest = _executed(tmp_path)

    assert largest > 2
    assert increase.counters.request_success == _REQUESTS
    assert increase.counters.execution_count < _REQUESTS / 2
    # Triton's own figure includes the way to the model's process and back.
    assert 0.99 * executed_ms < increase.busy_ms < 1.25 * executed_ms
    # What Triton adds up for each request is more than twice as much.
    assert increase.counters.compute_infer_us / 1000 > 2 * executed_ms
