"""A real engine as a child of this process. None outlives it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import httpx

from deployments.spec.domain.serving_spec import ServingSpec
from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.engines import rendered
from tests.waiting import wait_for

PROGRAM: Final = "SLIPWAY_TEST_VLLM"
# Of util-linux: when its parent is gone the server gets SIGTERM, at which it ends its own processes.
_END_WITH_PARENT: Final = ("setpriv", "--pdeathsig", "SIGTERM")
_LOG_TAIL: Final = 4000
_STOP_SECONDS: Final = 60


@dataclass(frozen=True, slots=True)
class Engine:
    process: subprocess.Popen[bytes]
    url: str
    log: Path

    def post(self, path: str, body: Any) -> httpx.Response:
        return plain_http.client.post(f"{self.url}{path}", json=body)

    def get(self, path: str) -> httpx.Response:
        return plain_http.client.get(f"{self.url}{path}")

    def log_tail(self) -> str:
        return self.log.read_text(errors="replace")[-_LOG_TAIL:]


@contextmanager
def running(
    spec: ServingSpec, folder: Path, *, model: Path, adapter: Path | None = None
) -> Iterator[Engine]:
    """Start the command of the rendered pod, and end it with all of its processes."""
    container = rendered.render(spec)
    (port,) = free_ports.take(1)
    command = rendered.exchange_command(container, port=port, model=model, adapter=adapter)
    assert command[0] == "vllm"
    log = folder / "vllm.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*_END_WITH_PARENT, os.environ[PROGRAM], *command[1:]],
            cwd=folder,
            env={**_own_environment(), **rendered.exchange_environment(container, folder)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    engine = Engine(process, f"http://127.0.0.1:{port}", log)
    try:
        wait_for(engine.log_tail, lambda: _is_ready(engine))
        yield engine
    finally:
        _stop(process)


def _own_environment() -> dict[str, str]:
    """Return the little that programs of any container find, and nothing of the tests."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def _is_ready(engine: Engine) -> bool:
    assert engine.process.poll() is None, engine.log_tail()
    try:
        return engine.get("/v1/models").status_code == 200
    except httpx.HTTPError:
        return False


def _stop(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_SECONDS)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
