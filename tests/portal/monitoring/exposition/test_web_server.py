"""Real gunicorn with two processes: an answer of either sums up both, also after one of them ended."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest

from portal import web_server
from slipway_localcluster.controllers import free_ports
from tests import plain_http
from tests.portal.monitoring.exposition.scrape import TOKEN, parse, value
from tests.waiting import wait_for

_ROOT = Path(__file__).resolve().parents[4]
_TOTAL = "slipway_http_requests_total"


@dataclass(frozen=True)
class Web:
    url: str
    process: subprocess.Popen[bytes]
    folder: Path

    def answered(self) -> float:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        text = plain_http.client.get(f"{self.url}/metrics", headers=headers).text
        return value(parse(text), _TOTAL, view="healthz", method="GET", status="200") or 0

    def workers(self) -> set[int]:
        return {child.pid for child in psutil.Process(self.process.pid).children()}

    def ask(self) -> None:
        # On a connection of its own, so that the processes take turns.
        assert plain_http.client.get(f"{self.url}/healthz").status_code == 200

    def both_have_counted(self) -> bool:
        self.ask()
        return len(self.files()) == 4

    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.glob("slipway-metrics-*/*"))


@pytest.fixture
def web(tmp_path: Path) -> Iterator[Web]:
    port = free_ports.take_one()
    command = [
        *(sys.executable, "-m", "gunicorn", "portal.wsgi:application"),
        *("--config", "python:portal.web_server", "--worker-class", "gthread"),
        *("--workers", "2", "--threads", "2", "--bind", f"127.0.0.1:{port}", "--no-control-socket"),
    ]
    environment = {**os.environ, "SLIPWAY_METRICS_TOKEN": TOKEN, "TMPDIR": str(tmp_path)}
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(command, cwd=_ROOT, env=environment, stdout=log, stderr=log)
    made = Web(f"http://127.0.0.1:{port}", process, tmp_path)
    try:
        wait_for("gunicorn answers", lambda: _answers(made, tmp_path / "log"))
        yield made
    finally:
        process.terminate()
        process.wait(60)


def _answers(web: Web, log: Path) -> bool:
    assert web.process.poll() is None, log.read_text()
    try:
        return plain_http.client.get(f"{web.url}/healthz").status_code == 200
    except httpx.TransportError:
        return False


def test_each_answer_has_all_processes_and_no_count_is_lost(web: Web) -> None:
    before = web.answered()
    for _ in range(30):
        web.ask()
    assert [web.answered() - before for _ in range(6)] == [30] * 6
    wait_for("both have counted", web.both_have_counted)
    counted, (first, *_) = web.answered(), sorted(web.workers())

    os.kill(first, signal.SIGKILL)

    wait_for("another was started", lambda: len(web.workers() - {first}) == 2)
    assert web.answered() >= counted
    total = web.answered()
    for _ in range(30):
        web.ask()
    assert web.answered() == total + 30
    # It took the place of the one that ended.
    assert web.files() == ["counter_0.db", "counter_1.db", "histogram_0.db", "histogram_1.db"]

    web.process.terminate()
    web.process.wait(60)

    assert list(web.folder.glob("slipway-metrics-*")) == []


def test_a_worker_takes_the_first_free_place() -> None:
    """After a reload the old ones still end."""
    server = SimpleNamespace(WORKERS={7: SimpleNamespace(slipway_place=0)})
    made = []
    for pid in (8, 9):
        worker = SimpleNamespace()
        web_server.pre_fork(server, worker)
        server.WORKERS[pid] = worker
        made.append(worker.slipway_place)
    del server.WORKERS[7]
    last = SimpleNamespace()
    web_server.pre_fork(server, last)

    assert (made, last.slipway_place) == ([1, 2], 0)
