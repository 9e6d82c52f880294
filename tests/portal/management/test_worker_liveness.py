"""A worker's file is renewed while it works, as the probe of the Helm chart reads it."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from celery.contrib.testing.worker import start_worker

from portal.celery import app
from portal.worker_liveness import AliveFile
from tests.waiting import wait_for

CHART = Path(__file__).resolve().parents[3] / "deploy" / "chart"


@pytest.fixture
def alive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "alive"
    monkeypatch.setenv("SLIPWAY_WORKER_ALIVE_FILE", str(path))
    monkeypatch.setattr("portal.worker_liveness._EVERY_SECONDS", 0.05)
    return path


def probe(path: Path) -> int:
    """The command of the chart's probe, on this file."""
    template = (CHART / "templates" / "_helpers.tpl").read_text()
    (command,) = re.findall(r"command: \[sh, -c, '(.+)'\]", template)
    command = command.replace("/tmp/{{ .file }}", str(path)).replace("{{ .minutes }}", "2")
    return subprocess.run(["sh", "-c", command], check=False).returncode


def test_a_worker_renews_its_file_and_the_probe_fails_once_it_is_old(
    transactional_db: None, alive: Path
) -> None:
    assert AliveFile in app.steps["worker"]
    with start_worker(app, perform_ping_check=False, queues=["telemetry"]):
        wait_for("the file", alive.exists)
        os.utime(alive, (0, 0))
        wait_for("it to be renewed", lambda: alive.stat().st_mtime > 0)
        assert probe(alive) == 0

    os.utime(alive, (0, 0))
    assert probe(alive) == 1
