"""Two gateways on one machine: neither listens on a port of the other, or takes its answers for its own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from slipway_localcluster import envoy
from slipway_localcluster.controllers import free_ports
from slipway_localcluster.controllers.envoy_files import EnvoyFiles
from tests.waiting import PATIENCE_SECONDS, wait_for


@contextmanager
def _running(folder: Path, files: EnvoyFiles) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(envoy.command(folder), stderr=subprocess.DEVNULL)
    try:
        wait_for("Envoy is live", lambda: process.poll() is not None or _is_live(files))
        yield process
    finally:
        process.kill()
        process.wait()


def _is_live(files: EnvoyFiles) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{files.admin_port}/ready").text == "LIVE\n"
    except httpx.HTTPError:
        return False


def test_a_second_envoy_does_not_share_the_port_of_a_gateway(tmp_path: Path) -> None:
    port = free_ports.take_one()
    first = EnvoyFiles(tmp_path / "first" / "envoy", port)
    second = EnvoyFiles(tmp_path / "second" / "envoy", port)

    with _running(tmp_path / "first", first) as one, _running(tmp_path / "second", second) as two:
        assert two.wait(PATIENCE_SECONDS) != 0
        assert one.poll() is None


def test_ports_where_an_envoy_of_another_folder_answers_are_chosen_again(tmp_path: Path) -> None:
    first = EnvoyFiles(tmp_path / "first" / "envoy", free_ports.take_one())
    with _running(tmp_path / "first", first):
        folder = tmp_path / "second" / "envoy"
        folder.mkdir(parents=True)
        (folder / "admin_port").write_text(str(first.admin_port))
        (folder / "stats_port").write_text(str(first.stats_port))

        second = EnvoyFiles(folder, free_ports.take_one())
        again = EnvoyFiles(tmp_path / "first" / "envoy", free_ports.take_one())

    assert {second.admin_port, second.stats_port}.isdisjoint({first.admin_port, first.stats_port})
    assert (again.admin_port, again.stats_port) == (first.admin_port, first.stats_port)
