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

from slipway_demo import guard, launcher, listeners, parts, ports, state
from slipway_demo.held_ports import HeldPorts
from slipway_demo.ports import Ports
from tests.waiting import PATIENCE_SECONDS, wait_for


@pytest.fixture
def busy_port() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield other.getsockname()[1]


@pytest.fixture
def held() -> Iterator[HeldPorts]:
    ports_of_this_demo = HeldPorts()
    yield ports_of_this_demo
    ports_of_this_demo.release()


def test_ports_of_the_last_start_are_taken_again(held: HeldPorts) -> None:
    before = ports.choose(held, remembered={}, web=0)
    held.release()

    assert ports.choose(held, remembered=before.to_json(), web=None) == before


def test_another_demo_with_the_same_ports_chooses_others(held: HeldPorts) -> None:
    first = ports.choose(held, remembered={}, web=0)
    other = HeldPorts()

    second = ports.choose(other, remembered=first.to_json(), web=None)

    other.release()
    assert {*first.to_json().values()}.isdisjoint(second.to_json().values())


def test_only_a_server_that_shares_addresses_gets_a_held_port(held: HeldPorts) -> None:
    port = ports.choose(held, remembered={}, web=0).web

    with socket.socket() as stranger, pytest.raises(OSError, match="in use"):
        stranger.bind(("127.0.0.1", port))
    with socket.socket() as part:
        part.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        part.bind(("127.0.0.1", port))
        part.listen()


_LISTEN = (
    "import socket, sys; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
    "print(s.getsockname()[1], flush=True); sys.stdin.read()"
)


def test_a_listener_belongs_to_the_group_of_its_process() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _LISTEN],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as server:
        assert server.stdout
        port = int(server.stdout.readline())

        assert listeners.listens(server.pid, port) is True
        assert listeners.listens(os.getpgid(0), port) is False
        assert server.stdin
        server.stdin.close()
        server.wait(PATIENCE_SECONDS)
        assert listeners.listens(server.pid, port) is None


def test_busy_port_gives_way_to_the_next_free_one(busy_port: int, held: HeldPorts) -> None:
    chosen = ports.choose(held, remembered={"web": busy_port}, web=None)

    assert chosen.web > busy_port
    assert held.hold(chosen.web)


def test_a_part_that_moved_is_named(busy_port: int, held: HeldPorts) -> None:
    remembered = {"gateway": busy_port, "web": 18_000}
    chosen = ports.choose(held, remembered=remembered, web=None)

    assert ports.describe_moved(remembered, Ports(web=18_000, gateway=chosen.gateway)) == [
        f"Port {busy_port} is in use by another program: gateway is at {chosen.gateway} this time."
    ]
    assert ports.describe_moved({}, chosen) == []


def test_any_port_is_none_that_a_client_may_hold_at_the_next_start(held: HeldPorts) -> None:
    first, last = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()

    chosen = ports.choose(held, remembered={}, web=0).to_json().values()

    assert [port for port in chosen if int(first) <= port <= int(last)] == []


def test_busy_requested_port_is_refused(busy_port: int, held: HeldPorts) -> None:
    with pytest.raises(ports.PortBusy, match=f"Port {busy_port}"):
        ports.choose(held, remembered={}, web=busy_port)


def test_no_two_parts_share_a_port(held: HeldPorts) -> None:
    remembered = dict.fromkeys(Ports().to_json(), 18_000)

    chosen = ports.choose(held, remembered=remembered, web=None).to_json()

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


class ForeignPart:
    """Stands in for supervisord's control: the part runs, but another program has its port."""

    def statuses(self) -> dict[str, dict[str, int]]:
        return {"web": {"pid": os.getpid() + 1, "state": 20}}

    def start(self, name: str) -> None:
        raise AssertionError(name)


def test_what_answers_at_a_port_of_another_program_is_not_ready(
    busy_port: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "Control", lambda _folder: ForeignPart())
    web = parts.Part("web", ("true",), lambda: True, "", port=busy_port)
    with subprocess.Popen(["sleep", "60"]) as supervisor:
        run = launcher.Launcher(folder=state.Folder(tmp_path), parts=[web], supervisor=supervisor)

        with pytest.raises(ports.PortTaken, match=f"Port {busy_port} of web was taken"):
            run.bring_up(prepare=lambda: None)
        supervisor.kill()
