"""HTTP CONNECT to the address of a pod, as the egress selector of an API server sends it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from slipway_localcluster.client.pod_tunnel import pod_tunnel
from slipway_localcluster.controllers.pod_runner import PORT_ANNOTATION
from slipway_localcluster.kinds import POD
from slipway_localcluster.store import Store

_ADDRESS = "10.244.0.7"


@pytest.fixture
def echo() -> Iterator[int]:
    """The port of a process that sends back what it gets, until the other side ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                while data := connection.recv(100):
                    connection.sendall(data)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield int(server.getsockname()[1])


@pytest.fixture
def path(tmp_path: Path, echo: int) -> Iterator[Path]:
    store = Store(tmp_path / "store.sqlite3")
    metadata = {"name": "one", "namespace": "vision", "annotations": {}}
    metadata["annotations"] = {f"{PORT_ANNOTATION}8002": str(echo)}
    pod = store.create(POD, {"metadata": metadata, "spec": {"containers": []}})
    store.replace_status(POD, {**pod, "status": {"podIP": _ADDRESS}})
    tunnel = pod_tunnel(store, tmp_path / "pods.sock")
    tunnel.start()
    yield tmp_path / "pods.sock"
    tunnel.stop()


def _connect(path: Path, target: str) -> tuple[socket.socket, bytes]:
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(10)
    connection.connect(str(path))
    connection.sendall(f"CONNECT {target} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    return connection, connection.recv(100)


def test_bytes_go_both_ways_until_one_side_ends(path: Path) -> None:
    connection, answer = _connect(path, f"{_ADDRESS}:8002")
    with connection:
        connection.sendall(b"ping")
        echoed = connection.recv(100)
        connection.shutdown(socket.SHUT_WR)
        end = connection.recv(100)

    assert answer == b"HTTP/1.1 200 OK\r\n\r\n"
    assert (echoed, end) == (b"ping", b"")


@pytest.mark.parametrize("target", [f"{_ADDRESS}:8003", "10.244.0.8:8002", "127.0.0.1:22", ""])
def test_nothing_but_ports_of_pods_is_reached(path: Path, target: str) -> None:
    connection, answer = _connect(path, target)
    with connection:
        end = connection.recv(100)

    assert answer == b"HTTP/1.1 404 Not Found\r\n\r\n"
    assert end == b""
