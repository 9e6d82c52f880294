"""The real Triton of the demo's wheel, on a repository of models."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import httpx

from deployments.manifests.domain import triton_args
from slipway_localcluster.controllers import free_ports, model_repository, processes, triton
from tests import plain_http
from tests.waiting import PATIENCE_SECONDS

# Ten seconds, which no setting changes, are all that Triton gives the process of a Python model to
# begin. On a busy machine that may be too little, and a kubelet would start the container again.
_TOO_SLOW = ("is not healthy", "lock_exception", "waiting for the stub process")


def start(root: Path) -> tuple[processes.Child, int]:
    """Serve `root/models`. Its process, which the caller ends, and its HTTP port once it is ready."""
    model_repository.prepare(root / "models")
    return start_with(root, root / "models", triton_args.command())


def start_with(
    root: Path, models: Path, arguments: Sequence[str], *, needed: Sequence[str] = ()
) -> tuple[processes.Child, int]:
    """As `start`, with the arguments of a container; also every `needed` model is ready."""
    installation = triton.install(root / "installed")
    environment = installation.environment
    launch = triton.plan_launch(
        installation,
        arguments,
        resolve=lambda _: models,
        choose_ports=free_ports.take,
        shared_memory_prefix="slipway-tests-",
        known=triton.known_flags(installation.binary, environment["LD_LIBRARY_PATH"]),
    )
    assert launch.ignored == ()
    log = root / "log"
    url = f"http://127.0.0.1:{launch.http_port}/v2"
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        log.unlink(missing_ok=True)
        child = processes.start(
            launch.command, environment=environment, log=log, record=root / "pid"
        )
        while child.is_running() and time.monotonic() < end:
            if _answers(f"{url}/health/ready"):
                break
            time.sleep(0.1)  # bounded polling of a real process
        is_up = child.is_running() and all(_answers(f"{url}/models/{n}/ready") for n in needed)
        if is_up and time.monotonic() < end:
            return child, launch.http_port
        child.kill()
        said = log.read_text()
        assert any(sign in said for sign in _TOO_SLOW), said[-3000:]
        assert time.monotonic() < end, said[-3000:]


def _answers(url: str) -> bool:
    try:
        return plain_http.client.get(url).status_code == 200
    except httpx.TransportError:
        return False
