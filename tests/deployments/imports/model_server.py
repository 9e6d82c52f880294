"""An HTTP server with files, that can misbehave in every way that a server does."""

from __future__ import annotations

import re
import ssl
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class ServedFile:
    body: bytes
    etag: str = '"one"'
    has_ranges: bool = True
    # What Content-Length says, if not the truth; -1 leaves it out.
    says_length: int | None = None
    # The connection ends after so many bytes of a body.
    stops_after: int | None = None
    redirects_to: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class ModelServer:
    address: str = ""
    files: dict[str, ServedFile] = field(default_factory=dict)
    # Path with query, and headers, of each request.
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    server: ThreadingHTTPServer | None = None

    def wrap(self, context: ssl.SSLContext) -> None:
        """Speak TLS from now on."""
        assert self.server is not None
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)

    def ranges(self) -> list[str]:
        return [headers.get("Range", "") for _, headers in self.requests]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_of_models: ModelServer

    def do_GET(self) -> None:
        owner = self.server_of_models
        owner.requests.append((self.path, dict(self.headers.items())))
        path = self.path.partition("?")[0]
        file = owner.files.get(self.path) or owner.files.get(path)
        if file is None:
            self._answer(404, b"", {})
        elif file.redirects_to:
            self._answer(302, b"", {"Location": file.redirects_to})
        elif file.status != 200:
            self._answer(file.status, b"no", file.headers)
        else:
            self._serve(file)

    def _serve(self, file: ServedFile) -> None:
        start, end, status = 0, len(file.body), 200
        headers = {"ETag": file.etag} if file.etag else {}
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if asked and file.has_ranges:
            start = int(asked[1])
            end = min(int(asked[2]) + 1, end) if asked[2] else end
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(file.body)}"
            status = 206
        body = file.body[start:end]
        self._answer(status, body, headers | file.headers, file)

    def _answer(
        self, status: int, body: bytes, headers: dict[str, str], file: ServedFile | None = None
    ) -> None:
        says = len(body) if file is None or file.says_length is None else file.says_length
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if says >= 0:
            self.send_header("Content-Length", str(says))
        if says < 0 or says != len(body):
            self.send_header("Connection", "close")
            self.close_connection = True
        self.end_headers()
        stops = None if file is None else file.stops_after
        try:
            self.wfile.write(body if stops is None else body[:stops])
        except OSError:
            self.close_connection = True
        if stops is not None and stops < len(body):
            self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def model_server() -> Iterator[ModelServer]:
    owner = ModelServer()
    handler = type("Handler", (_Handler,), {"server_of_models": owner})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}).start()
    owner.server = server
    owner.address = f"http://127.0.0.1:{server.server_port}"
    yield owner
    server.shutdown()
    server.server_close()
