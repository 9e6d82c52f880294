"""Mirrored requests through a real Envoy: failures of the mirror do not reach callers."""

from __future__ import annotations

import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx

from slipway_localcluster import envoy
from slipway_localcluster.controllers import free_ports, http_routes
from slipway_localcluster.controllers.envoy_config import Endpoint
from slipway_localcluster.controllers.envoy_files import EnvoyFiles
from tests.localcluster.controllers import manifests
from tests.waiting import wait_for

# More than Envoy buffers of a request by default.
LARGE = b"x" * (3 << 20)


class Backend(ThreadingHTTPServer):
    """Answers every request with one status; records paths and body sizes."""

    daemon_threads = True

    def __init__(self, status: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status = status
        self.received: list[tuple[str, int]] = []

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.server_port)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Backend

    def do_POST(self) -> None:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            body = self._chunks()
        else:
            body = len(self.rfile.read(int(self.headers.get("Content-Length", 0))))
        self.server.received.append((self.path, body))
        self.send_response(self.server.status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def _chunks(self) -> int:
        total = 0
        while size := int(self.rfile.readline(), 16):
            total += len(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return total

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@contextmanager
def _serving(status: int) -> Iterator[Backend]:
    backend = Backend(status)
    thread = threading.Thread(target=backend.serve_forever)
    thread.start()
    try:
        yield backend
    finally:
        backend.shutdown()
        backend.server_close()
        thread.join()


def _is_listening(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def _envoy(folder: Path, port: int) -> Iterator[None]:
    process = subprocess.Popen(envoy.command(folder), stderr=subprocess.DEVNULL)
    try:
        wait_for("Envoy listens", lambda: _is_listening(port))
        yield
    finally:
        process.kill()
        process.wait()


def test_a_percentage_is_mirrored_with_path_and_body_and_mirror_failures_do_not_reach_callers(
    tmp_path: Path,
) -> None:
    port = free_ports.take_one()
    route = manifests.route({"one": 100})
    mirror = {"backendRef": {"name": "two-predictor", "port": 80}, "percent": 40}
    filters = route["spec"]["rules"][0]["filters"]
    filters.append({"type": "RequestMirror", "requestMirror": mirror})
    files = EnvoyFiles(tmp_path / "envoy", port)

    with _serving(200) as stable, _serving(500) as candidate:
        named = {"vision_one-predictor_80": stable, "vision_two-predictor_80": candidate}
        endpoints = {name: [backend.endpoint] for name, backend in named.items()}
        files.update(http_routes.routes_of(route), endpoints)
        url = f"http://127.0.0.1:{port}/vision/digits/v2/models/m/infer"
        with _envoy(tmp_path, port), httpx.Client(timeout=20, verify=False) as client:
            wait_for("the route works", lambda: client.post(url).status_code == 200)
            stable.received.clear()
            candidate.received.clear()
            statuses = [client.post(url, content=b"hello").status_code for _ in range(300)]
            copies = len(candidate.received)
            mirror["percent"] = 100
            files.update(http_routes.routes_of(route), endpoints)
            wait_for("everything is copied", lambda: _is_copied(client, url, candidate))
            large = client.post(url, content=LARGE).status_code
            # Envoy does not wait for copies, so copies of earlier requests may arrive in between.
            copy = ("/v2/models/m/infer", len(LARGE))
            wait_for("the copy of a large request", lambda: copy in candidate.received)

    assert set(statuses) == {200}
    # Six standard deviations of a binomial distribution with n=300, p=0.4.
    assert 120 - 51 <= copies <= 120 + 51
    assert large == 200
    assert {path for path, _ in stable.received} == {"/v2/models/m/infer"}
    assert {path for path, _ in candidate.received} == {"/v2/models/m/infer"}


def _is_copied(client: httpx.Client, url: str, candidate: Backend) -> bool:
    before = len(candidate.received)
    for _ in range(10):
        client.post(url, content=b"hello")
    return len(candidate.received) >= before + 9
