"""A syslog server on 127.0.0.1 that reads counted messages until the sender ends its half."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import ssl
import struct
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any


class SyslogServer(socketserver.ThreadingTCPServer):
    """`lets_go_after`: bytes that the next connection reads before it is reset."""

    allow_reuse_address = True

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.context = context
        self.messages: list[str] = []
        self.lets_go_after: int | None = None

    @property
    def address(self) -> str:
        scheme = "tls" if self.context else "tcp"
        return f"{scheme}://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A refused handshake is what a test is about."""


class _Connection(socketserver.BaseRequestHandler):
    server: SyslogServer

    def handle(self) -> None:
        stream: socket.socket = self.request
        if self.server.lets_go_after is not None:
            stream.recv(self.server.lets_go_after)
            # Closing with this option resets the connection.
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            stream.close()
            return
        if self.server.context:
            stream = self.server.context.wrap_socket(stream, server_side=True)
        content = b"".join(iter(lambda: stream.recv(65536), b""))
        while content:
            length, _, rest = content.partition(b" ")
            self.server.messages.append(rest[: int(length)].decode("ascii"))
            content = rest[int(length) :]
        if isinstance(stream, ssl.SSLSocket):
            with contextlib.suppress(OSError):
                stream.unwrap()
        stream.close()


@contextlib.contextmanager
def running(certificate: Path | None = None, key: Path | None = None) -> Iterator[SyslogServer]:
    context = None
    if certificate and key:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
    with SyslogServer(context) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()
