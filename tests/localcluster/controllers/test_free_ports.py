"""Ports of servers: no two get the same, and none is one that the system draws for clients."""

import socket
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from slipway_localcluster.controllers import free_ports


def _take_fifty(turns: Path) -> list[int]:
    return [free_ports.take(1, turns=turns)[0] for _ in range(50)]


def test_processes_that_choose_at_the_same_time_get_different_ports(tmp_path: Path) -> None:
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        chosen = [
            port for ports in pool.map(_take_fifty, [tmp_path / "turns"] * 4) for port in ports
        ]

    assert len(set(chosen)) == 200


def test_a_port_is_not_given_again_before_all_others_were(tmp_path: Path) -> None:
    first = free_ports.take(3, turns=tmp_path / "turns")
    second = free_ports.take(3, turns=tmp_path / "turns")

    assert sorted({*first, *second}) == [*first, *second]


def test_no_port_is_one_that_the_system_draws_for_clients(tmp_path: Path) -> None:
    with socket.socket() as client:
        client.bind(("127.0.0.1", 0))
        drawn = client.getsockname()[1]

    given = free_ports.take(5, turns=tmp_path / "turns")

    assert max(given) < drawn
    assert min(given) >= 20000


def test_a_port_that_somebody_listens_on_is_passed_over(tmp_path: Path) -> None:
    turns = tmp_path / "turns"
    (probe,) = free_ports.take(1, turns=turns)
    turns.write_text(str(probe))
    with socket.socket() as server:
        server.bind(("127.0.0.1", probe))
        server.listen()

        (given,) = free_ports.take(1, turns=turns)

    assert given > probe


@pytest.mark.parametrize("content", ["", "nonsense", "99999", "-1", "19999"])
def test_a_damaged_file_of_turns_starts_again(tmp_path: Path, content: str) -> None:
    (tmp_path / "turns").write_text(content)

    (port,) = free_ports.take(1, turns=tmp_path / "turns")

    assert 20000 <= port < 32768


def test_after_the_last_port_comes_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = tmp_path / "drawn"
    drawn.write_text("22000\t60999\n")
    monkeypatch.setattr(free_ports, "_DRAWN_BY_THE_SYSTEM", drawn)
    monkeypatch.setattr(free_ports, "is_unused", lambda port: port not in range(20000, 20003))
    (tmp_path / "turns").write_text("21999")

    assert free_ports.take(2, turns=tmp_path / "turns") == [21999, 20003]
    assert free_ports.take(1, turns=tmp_path / "turns") == [20004]


def test_it_says_so_when_too_few_are_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(free_ports, "is_unused", lambda port: port == 20007)

    with pytest.raises(OSError, match="fewer than 2 of the ports 20000 to"):
        free_ports.take(2, turns=tmp_path / "turns")
