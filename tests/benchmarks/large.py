"""A model of 5 GiB in the whole demo: pushed, verified until it is ready, deployed, and its answers compared.

An ONNX graph that takes rows of one table, which lies in a file beside it. The demo is the one of `make demo`;
the client pushes, ONNX Runtime answers for comparison, and the largest resident size of every web process
and worker is taken twice a second, after a small table went the same way. SLIPWAY_BENCH_MIB makes the table smaller.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import psutil
import tritonclient.http as triton_http
from onnx import TensorProto, helper

from slipway_client import Client
from tests.benchmarks.result import Result
from tests.e2e.demo_process import DemoProcess
from tests.e2e.rest import Person

MIB = 2**20
TABLE_MIB = int(os.environ.get("SLIPWAY_BENCH_MIB", "5120"))
WIDTH = 1024
REQUESTS = 8
SMALL_MIB = 16
WEB_MIB = 10.0
# A worker holds parts and not files; a forked child begins with what its parent has.
WORKER_MIB = 400.0
_SECONDS = 3600.0


class _Watch(threading.Thread):
    """The largest growth of one process of a kind, in MiB, since the watch began."""

    def __init__(self, demo: DemoProcess) -> None:
        super().__init__(daemon=True)
        self.peaks: dict[str, float] = {}
        self._kinds = {"web": "portal.wsgi:application", "worker": "portal.celery worker"}
        self._known = {
            process: kind
            for process in demo.processes()
            for kind, text in self._kinds.items()
            if text in " ".join(process.cmdline())
        }
        self.before = self._read()
        self._is_over = threading.Event()

    def run(self) -> None:
        while not self._is_over.wait(0.5):
            for kind, mib in self._read().items():
                self.peaks[kind] = max(self.peaks.get(kind, 0.0), mib)

    def stop(self) -> None:
        self._is_over.set()
        self.join()

    def _read(self) -> dict[str, float]:
        largest: dict[str, float] = {}
        for process, kind in self._known.items():
            with contextlib.suppress(psutil.Error):
                mib = process.memory_info().rss / MIB
                largest[kind] = max(largest.get(kind, 0.0), mib)
        return largest


def main() -> Result:
    print(__doc__)
    with tempfile.TemporaryDirectory(prefix="slipway-bench-") as name:
        folder, demo = Path(name), DemoProcess(Path(name) / "var")
        small, large = Table(folder / "small", SMALL_MIB), Table(folder / "table", TABLE_MIB)
        for table in (small, large):
            _write(table)
        demo.start()
        try:
            return _measure(demo, small, large)
        finally:
            demo.stop()


@dataclass(frozen=True, slots=True)
class Table:
    """A folder with table.onnx and table.bin. Its name is that of the model and of the deployment."""

    folder: Path
    mib: int

    @property
    def rows(self) -> int:
        return self.mib * MIB // (4 * WIDTH)


def _write(table: Table) -> None:
    """Each row is its number and what follows from it, so that a wrong row is seen."""
    folder, rows = table.folder, table.rows
    folder.mkdir()
    block, step = np.arange(WIDTH, dtype=np.float32) / WIDTH, 4096
    with (folder / "table.bin").open("wb") as file:
        for start in range(0, rows, step):
            numbers = np.arange(start, min(start + step, rows), dtype=np.float32)
            file.write((numbers[:, None] + block[None, :]).tobytes())
    weights = TensorProto(
        name="table",
        data_type=TensorProto.FLOAT,
        dims=[rows, WIDTH],
        data_location=TensorProto.EXTERNAL,
    )
    for key, value in (("location", "table.bin"), ("length", str(rows * WIDTH * 4))):
        weights.external_data.add(key=key, value=value)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "ids"], ["rows"])],
        "table",
        [helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["n", WIDTH])],
        [weights],
    )
    opset = helper.make_opsetid("", 17)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    (folder / "table.onnx").write_bytes(model.SerializeToString())


def _measure(demo: DemoProcess, small: Table, large: Table) -> Result:
    member, lead = Person(demo, "member"), Person(demo, "lead")
    # What each process loads with its first version and deployment is not the size of a model.
    wrong = _take_through(demo, member, lead, small)
    watch = _Watch(demo)
    watch.start()
    wrong += _take_through(demo, member, lead, large)
    watch.stop()
    web, worker = (watch.peaks[kind] - watch.before[kind] for kind in ("web", "worker"))
    print(
        f"before {watch.before}, peaks {watch.peaks}; grew: web {web:.0f} MiB (< {WEB_MIB:g}), "
        f"worker {worker:.0f} MiB (< {WORKER_MIB:g}); wrong answers: {wrong}"
    )
    value = round(max(web / WEB_MIB, worker / WORKER_MIB, float(wrong)), 2)
    return Result("large", value, 1.0, "worst of growth of web and of worker over their bounds")


def _take_through(demo: DemoProcess, member: Person, lead: Person, table: Table) -> int:
    """From a folder to answers; how many of them are wrong."""
    name = table.folder.name
    print(f"{name}: {table.mib:,} MiB")
    with Client(demo.url, member.token) as client:
        pushed = _timed("pushed", lambda: client.push(table.folder, f"vision/{name}", wait=False))
        ready = _timed("ready", lambda: _until(lambda: _ended(member.get(f"versions/{pushed.id}"))))
    print(f"{ready['state']} {ready['state_reason']}")
    for check in ready["checks"]:
        print(f"  {check['name']}: {check['ok']} {check['detail'][:120]}")
    assert ready["state"] == "ready"
    change = member.request_deployment(ready, name, memory="12Gi")
    lead.approve(change)
    at = f"deployments/{change['deployment_id']}"
    served = _timed("deployed", lambda: _until(lambda: _serving(member.get(at))))
    return _compare(served["url"], table)


def _compare(url: str, table: Table) -> int:
    """Rows that differ from those of ONNX Runtime, or from the arithmetic that wrote the table."""
    session = onnxruntime.InferenceSession(table.folder / "table.onnx")
    ids = np.random.default_rng(3).integers(0, table.rows, size=32 * REQUESTS)
    ids[:2] = 0, table.rows - 1
    expected: Any = session.run(None, {"ids": ids})[0]
    written = ids.astype(np.float32)[:, None] + np.arange(WIDTH, dtype=np.float32) / WIDTH
    del session
    model = table.folder.name
    with triton_http.InferenceServerClient(
        url.removeprefix("http://"), network_timeout=300.0, connection_timeout=300.0
    ) as triton:
        answers = [_rows_of(triton, model, some) for some in np.split(ids, REQUESTS)]
        answers.append(_rows_of(triton, model, ids[:1]))
    answer = np.concatenate(answers)
    expected, written = (np.concatenate([whole, whole[:1]]) for whole in (expected, written))
    assert answer.shape == expected.shape, answer.shape
    wrong = np.any((answer != expected) | (answer != written), axis=1)
    print(f"{len(answer)} rows of {len(answers)} requests compared; wrong: {int(wrong.sum())}")
    return int(wrong.sum())


def _rows_of(triton: triton_http.InferenceServerClient, model: str, ids: Any) -> Any:
    """As the page's example: the version is batched, so that each item is a batch of one number."""
    given = triton_http.InferInput("ids", [len(ids), 1], "INT64")
    given.set_data_from_numpy(ids.reshape(-1, 1))
    return triton.infer(model, [given]).as_numpy("rows")


def _ended(version: dict[str, Any]) -> dict[str, Any] | None:
    return None if version["state"] in {"uploading", "verifying"} else version


def _serving(deployment: dict[str, Any]) -> dict[str, Any] | None:
    return deployment if deployment["state"] == "ready" else None


def _until(read: Callable[[], dict[str, Any] | None]) -> dict[str, Any]:
    end = time.monotonic() + _SECONDS
    while (answer := read()) is None:
        assert time.monotonic() < end, f"not within {_SECONDS:.0f} s"
        time.sleep(1)
    return answer


def _timed(what: str, work: Callable[[], Any]) -> Any:
    began = time.monotonic()
    answer = work()
    print(f"{what} in {time.monotonic() - began:.0f} s", flush=True)
    return answer
