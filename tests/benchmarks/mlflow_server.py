"""A real MLflow 3 tracking server on PostgreSQL, from an environment of its own, filled with versions."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import httpx
import psycopg

from tests.benchmarks import waiting

VERSION = "3.17.2"
FOLDER = Path.home() / ".cache" / "slipway" / f"mlflow-{VERSION}"
# Without its workers for jobs, which would only take processor time from it.
_ENVIRONMENT = {
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "DO_NOT_TRACK": "true",
    "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false",
}
_START_SECONDS = 400.0


def install() -> None:
    """Once; later runs take it from the cache. Needs a package index the first time."""
    done = FOLDER / ".installed"
    if done.exists():
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(FOLDER)], check=True)
    packages = (f"mlflow=={VERSION}", "psycopg[binary]")
    subprocess.run([FOLDER / "bin" / "python", "-m", "pip", "install", "-q", *packages], check=True)
    done.touch()


def start(
    parts: contextlib.ExitStack, folder: Path, database: str, *, port: int, workers: int
) -> tuple[str, subprocess.Popen[bytes]]:
    """Its address and process, once it answers. `database` is empty before."""
    command = [
        *(str(FOLDER / "bin" / "mlflow"), "server", "--host", "127.0.0.1", "--port", str(port)),
        *("--backend-store-uri", database, "--workers", str(workers)),
        *("--default-artifact-root", str(folder / "artifacts")),
    ]
    log = parts.enter_context((folder / "mlflow.log").open("w"))
    process = subprocess.Popen(
        command, env={**os.environ, **_ENVIRONMENT}, stdout=log, stderr=subprocess.STDOUT
    )
    parts.callback(process.wait, 60)
    parts.callback(process.terminate)
    address = f"http://127.0.0.1:{port}"
    waiting.until(
        lambda: httpx.get(f"{address}/health", timeout=60).is_success,
        seconds=_START_SECONDS,
        log=folder / "mlflow.log",
    )
    return address, process


def fill(database: str, *, models: int, versions_each: int) -> None:
    """What its own requests leave, in its own tables: a request for each would take minutes."""
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO registered_models (name, creation_time, last_updated_time, workspace) "
            "SELECT 'model-' || m, 0, 0, 'default' FROM generate_series(0, %s - 1) m",
            [models],
        )
        connection.execute(
            "INSERT INTO model_versions (name, version, creation_time, last_updated_time, "
            "description, current_stage, source, run_id, status, run_link, storage_location, "
            "workspace) SELECT 'model-' || m, v, 0, 0, '', 'None', 's3://bucket/' || m || '/' || v, "
            "'', 'READY', '', 's3://bucket/' || m || '/' || v, 'default' "
            "FROM generate_series(0, %s - 1) m, generate_series(1, %s) v",
            [models, versions_each],
        )
        for key, value in (
            ("precision", "CASE v / 12 %% 4 WHEN 0 THEN 'int8' ELSE 'fp16' END"),
            ("dataset", "'2026-' || lpad((v %% 12 + 1)::text, 2, '0')"),
        ):
            connection.execute(
                "INSERT INTO model_version_tags (key, value, name, version, workspace) "
                f"SELECT '{key}', {value}, 'model-' || m, v, 'default' "
                "FROM generate_series(0, %s - 1) m, generate_series(1, %s) v",
                [models, versions_each],
            )
        connection.commit()
        connection.autocommit = True
        connection.execute("ANALYZE")
