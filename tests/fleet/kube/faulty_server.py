"""An API server that misbehaves: a tiny real HTTP server, and the gateway as its client."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from fleet.kube.domain.connection import Connection
from fleet.kube.gateways.client import HttpKubeClient

Answer = Callable[[BaseHTTPRequestHandler], None]


class Faulty:
    """Answers each request with the next of `answers`, and the last one again and again."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.requests: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                outer.requests.append(self.path)
                answer = outer.answers.pop(0) if len(outer.answers) > 1 else outer.answers[0]
                answer(self)

            def log_message(self, *_: object) -> None:
                return

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_address[1]}"


def answer(status: int, body: object, **headers: str) -> Answer:
    def send(handler: BaseHTTPRequestHandler) -> None:
        content = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(content)

    return send


def slow(handler: BaseHTTPRequestHandler) -> None:
    time.sleep(1)


def hang_up(handler: BaseHTTPRequestHandler) -> None:
    handler.close_connection = True


def status_of(code: int, message: str, causes: list[dict[str, str]] | None = None) -> object:
    return {"kind": "Status", "code": code, "message": message, "details": {"causes": causes or []}}


@pytest.fixture
def faulty() -> Iterator[Faulty]:
    server = Faulty()
    yield server
    server.server.shutdown()
    server.server.server_close()


def client_of(url: str, tmp_path: Path) -> HttpKubeClient:
    config = {
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return HttpKubeClient(Connection("faulty", "kubeconfig", kubeconfig_path=str(path)))


@pytest.fixture
def client(faulty: Faulty, tmp_path: Path) -> HttpKubeClient:
    return client_of(faulty.url, tmp_path)
