"""What the launcher of the demo decides before it starts anything."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from portal.management.demo import guard, parts, ports, state
from portal.management.demo.ports import Ports
from tests.waiting import PATIENCE_SECONDS, wait_for


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


def test_ports_of_the_last_start_are_taken_again() -> None:
    before = ports.choose(remembered={}, web=0)

    assert ports.choose(remembered=before.to_json(), web=None) == before


def test_busy_port_gives_way_to_the_next_free_one(busy_port: int) -> None:
    chosen = ports.choose(remembered={"web": busy_port}, web=None)

    assert chosen.web > busy_port
    assert ports.is_free(chosen.web)


def test_a_part_that_moved_is_named(busy_port: int) -> None:
    remembered = {"gateway": busy_port, "web": 18_000}
    chosen = ports.choose(remembered=remembered, web=None)

    assert ports.moved(remembered, Ports(web=18_000, gateway=chosen.gateway)) == [
        f"Port {busy_port} is in use by another program: gateway is at {chosen.gateway} this time."
    ]
    assert ports.moved({}, chosen) == []


def test_any_port_is_none_that_a_client_may_hold_at_the_next_start() -> None:
    first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()

    chosen = ports.choose(remembered={}, web=0).to_json().values()

    assert [port for port in chosen if int(first) <= port <= int(last)] == []


def test_busy_requested_port_is_refused(busy_port: int) -> None:
    with pytest.raises(ports.PortBusy, match=f"Port {busy_port}"):
        ports.choose(remembered={}, web=busy_port)


def test_no_two_parts_share_a_port() -> None:
    remembered = dict.fromkeys(Ports().to_json(), 18_000)

    chosen = ports.choose(remembered=remembered, web=None).to_json()

    assert len(set(chosen.values())) == len(chosen)


@pytest.mark.parametrize("has_samples", [True, False])
def test_nodes_of_the_samples_are_there_only_with_them(
    tmp_path: Path, *, has_samples: bool
) -> None:
    made = parts.all_parts(state.Folder(tmp_path), Ports(), has_samples=has_samples)

    cluster = next(part for part in made if part.name == "cluster")
    assert ("--sample-nodes" in cluster.command) is has_samples


def test_secrets_are_made_once(tmp_path: Path) -> None:
    folder = state.Folder(tmp_path / "var")
    folder.open()

    assert folder.secrets() == folder.secrets()
    assert len(folder.secrets().secret_key) >= 50


def test_socket_of_a_deep_folder_has_a_short_path(tmp_path: Path) -> None:
    deep = state.Folder(tmp_path / ("x" * 120))

    assert len(str(deep.supervisor_socket)) < 100
    assert deep.supervisor_socket != state.Folder(tmp_path / ("y" * 120)).supervisor_socket


def test_guarded_program_ends_with_its_parent() -> None:
    program = [sys.executable, "-c", "import time; time.sleep(60)"]
    code = (
        "import subprocess, sys, time;"
        f"child = subprocess.Popen([sys.executable, {guard.__file__!r}, *{program!r}]);"
        "time.sleep(0.5); print(child.pid, flush=True); time.sleep(60)"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert parent.stdout
    child = psutil.Process(int(parent.stdout.readline()))

    os.kill(parent.pid, signal.SIGKILL)

    parent.wait(PATIENCE_SECONDS)
    wait_for("end", lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)
