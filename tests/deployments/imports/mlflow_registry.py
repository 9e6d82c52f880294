"""A real MLflow 3 server for all tests of a run, with models that its own client registered.

A filled server is kept in the cache folder: filling one takes MLflow half a minute, and minutes on a busy machine.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.client import mlflow_environment

# Its first start makes the tables of its database.
_START_SECONDS = 500
_FACTS = "facts.json"
_QUIET = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "GIT_PYTHON_REFRESH": "quiet",
    # Otherwise seven processes poll for jobs, with half a core together, as long as the server runs.
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
REGISTER = Path(__file__).with_name("register_in_mlflow.py")


@dataclass(frozen=True, slots=True)
class Registry:
    """`facts` are what the registering script printed: ids and versions by model."""

    address: str
    artifacts: Path
    facts: dict[str, Any]


@contextmanager
def serving(folder: Path, *, port: int = 0) -> Iterator[str]:
    """The address of an MLflow server with SQLite and a proxied root of artifacts."""
    port = port or free_ports.take_one()
    command = [
        *(str(mlflow_environment.programs() / "mlflow"), "server", "--host", "127.0.0.1"),
        *("--port", str(port), "--workers", "1"),
        *("--backend-store-uri", f"sqlite:///{folder}/mlflow.db"),
        *("--artifacts-destination", str(folder / "artifacts")),
    ]
    with (folder / "mlflow.log").open("w") as log:
        process = subprocess.Popen(
            command, env=environment(folder), stdout=log, stderr=subprocess.STDOUT
        )
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_until_healthy(address, process, folder / "mlflow.log")
        yield address
    finally:
        process.terminate()
        process.wait(60)


def environment(folder: Path, **more: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    return {**kept, **_QUIET, "HOME": str(folder), **more}


def run_python(folder: Path, script: Path, *arguments: str, **variables: str) -> str:
    """The output of a script in MLflow's environment."""
    done = subprocess.run(
        [mlflow_environment.programs() / "python", script, *arguments],
        cwd=folder,
        env=environment(folder, **variables),
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="session")
def mlflow_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    """Filled once for each MLflow and each version of the script, then copied from the cache folder."""
    with filled_registry(tmp_path_factory) as registry:
        yield registry


@contextmanager
def filled_registry(
    tmp_path_factory: pytest.TempPathFactory, *, port: int = 0
) -> Iterator[Registry]:
    folder = tmp_path_factory.mktemp("mlflow") / "registry"
    shutil.copytree(_filled(tmp_path_factory), folder)
    with serving(folder, port=port) as address:
        facts = json.loads((folder / _FACTS).read_text())
        yield Registry(address, folder / "artifacts", facts)


def _filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with MLflow's database and artifacts, which name no place outside the folder."""
    digest = hashlib.sha256(REGISTER.read_bytes()).hexdigest()[:12]
    filled = mlflow_environment.programs().parent / f"registry-{digest}"
    if not filled.exists():
        folder = tmp_path_factory.mktemp("mlflow-to-fill") / "registry"
        folder.mkdir()
        with serving(folder) as address:
            output = run_python(folder, REGISTER, MLFLOW_TRACKING_URI=address)
        (folder / _FACTS).write_text(output.splitlines()[-1])
        partial = filled.with_name(f"{filled.name}.{os.getpid()}")
        shutil.copytree(folder, partial)
        with suppress(OSError):  # another run was faster
            partial.rename(filled)
    return filled


def _wait_until_healthy(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    until = time.monotonic() + _START_SECONDS
    while time.monotonic() < until:
        assert process.poll() is None, log.read_text()
        try:
            if plain_http.client.get(f"{address}/health", timeout=10).is_success:
                return
        except httpx.HTTPError:
            time.sleep(0.25)
    raise AssertionError(f"no MLflow within {_START_SECONDS} s\n{log.read_text()}")
