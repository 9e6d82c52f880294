"""The demo ends completely, starts again where it was, and says what is in its way."""

from __future__ import annotations

import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.e2e.demo_process import ROOT, DemoProcess
from tests.e2e.rest import Classifier, Person
from tests.e2e.test_killed_parts import answers_right
from tests.waiting import PATIENCE_SECONDS, wait_for


def run_demo(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "slipway_demo", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
        check=False,
    )


def test_the_first_page_of_a_fresh_demo_knows_what_its_cluster_has(demo: DemoProcess) -> None:
    (cluster,) = demo.clusters_at_first

    features = cluster["capabilities"]["features"]
    assert features["kserve"]["is_there"] is True
    assert features["gateway-api"]["is_there"] is True
    assert features["caller-keys"]["is_there"] is True
    assert cluster["capabilities"]["gpu_offers"]


def test_ctrl_c_ends_every_process_and_the_second_start_serves_what_was_deployed(
    demo: DemoProcess, member: Person, served: dict[str, Any], classifier: Classifier
) -> None:
    url = demo.url

    assert demo.stop(signal.SIGINT) == 0

    assert demo.processes() == []
    demo.start(port=None)
    assert demo.url == url
    wait_for("right answer", lambda: answers_right(classifier))
    assert member.get(f"deployments/{served['id']}")["name"] == "filetype"


def test_killed_launcher_and_supervisor_leave_nothing_in_the_way(
    demo: DemoProcess, member: Person, served: dict[str, Any], classifier: Classifier
) -> None:
    url = demo.url
    supervisor = int((demo.folder / "supervisord.pid").read_text())
    assert demo.process

    psutil.Process(supervisor).kill()
    demo.process.kill()
    demo.process.wait(10)

    demo.start(port=None)
    assert demo.url == url
    wait_for("right answer", lambda: answers_right(classifier))


def test_second_demo_on_the_same_folder_is_refused(demo: DemoProcess) -> None:
    done = run_demo("--data-dir", str(demo.folder))

    assert done.returncode == 1
    assert f"already runs from {demo.folder}" in done.stderr


def test_reset_of_a_running_demo_is_refused(demo: DemoProcess) -> None:
    done = run_demo("--data-dir", str(demo.folder), "--reset")

    assert done.returncode == 1
    assert (demo.folder / "slipway.sqlite3").exists()


def test_busy_requested_port_is_named(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]

        done = run_demo("--data-dir", str(tmp_path / "var"), "--port", str(port))

    assert done.returncode == 1
    assert f"Port {port} on 127.0.0.1 is in use" in done.stderr
    assert "SLIPWAY_PORT=" in done.stderr


def test_reset_empties_the_folder(tmp_path: Path) -> None:
    (tmp_path / "var" / "log").mkdir(parents=True)

    assert run_demo("--data-dir", str(tmp_path / "var"), "--reset").returncode == 0

    assert not (tmp_path / "var").exists()


@pytest.mark.parametrize("name", ["secrets.json", "demo.env", "supervisord.conf"])
def test_secrets_are_readable_by_their_owner_only(name: str, demo: DemoProcess) -> None:
    assert stat.S_IMODE((demo.folder / name).stat().st_mode) == 0o600


def test_everything_listens_on_this_machine_only(demo: DemoProcess) -> None:
    addresses = {
        connection.laddr.ip.removeprefix("::ffff:")
        for process in demo.processes()
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }

    assert addresses == {"127.0.0.1"}


def test_wrong_person_is_kept_out(demo: DemoProcess, served: dict[str, Any]) -> None:
    stranger = Person(demo, "nlp-member")

    assert stranger.http.get(f"deployments/{served['id']}").status_code == 404
    assert stranger.get("deployments")["results"] == []
    assert Classifier(demo, served["url"], "filetype").kind_of(b"{}" * 8)
