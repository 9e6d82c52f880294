"""A proxy before the store that holds back, loses or counts requests to assemble an upload."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import boto3
from botocore.config import Config

from deployments.registry.gateways.object_store import S3Store
from tests import plain_http
from tests.waiting import PATIENCE_SECONDS


class Gate:
    """What arrives waits until `opened`, then goes on to the store; `is_losing`: it never does."""

    def __init__(self, target: str) -> None:
        self.target = target
        self.requests: list[str] = []
        self.opened = threading.Event()
        self.is_losing = False
        self.done: list[int] = []

    def pass_on(self, path: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        self.requests.append(path)
        if self.is_losing:
            return 504, b""
        self.opened.wait(PATIENCE_SECONDS)
        answer = plain_http.client.post(f"{self.target}{path}", content=body, headers=headers)
        self.done.append(answer.status_code)
        return answer.status_code, answer.content


@contextmanager
def before(store: S3Store) -> Iterator[tuple[Gate, S3Store]]:
    """The store, whose requests to assemble an upload pass a gate and time out soon."""
    gate = Gate(str(store.client.meta.endpoint_url))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = gate.pass_on(self.path, body, dict(self.headers))
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
            except OSError:
                return  # The portal no longer waits.

        def log_message(self, *_: Any) -> None:
            return

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    config = Config(read_timeout=0.1, retries={"mode": "standard", "total_max_attempts": 1})
    completing = boto3.client(
        "s3",
        region_name=store.client.meta.region_name,
        endpoint_url=f"http://127.0.0.1:{server.server_port}",
        config=config.merge(Config(s3={"addressing_style": "path"})),
    )
    slow = S3Store(
        bucket=store.bucket,
        client=store.client,
        browser_client=store.client,
        completing_client=completing,
    )
    try:
        yield gate, slow
    finally:
        gate.opened.set()
        server.shutdown()
        server.server_close()
        thread.join(PATIENCE_SECONDS)
