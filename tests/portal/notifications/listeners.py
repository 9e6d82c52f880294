"""A real web server and a real mail server that remember what they were sent."""

from __future__ import annotations

import json
import socketserver
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Hook:
    """Answers with the first of `statuses` that is left, then with 200."""

    url: str = ""
    statuses: list[int] = field(default_factory=list)
    redirect_to: str = ""
    paths: list[str] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)


@contextmanager
def web_server() -> Iterator[Hook]:
    hook = Hook()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            hook.paths.append(self.path)
            hook.bodies.append(json.loads(body))
            self.send_response(hook.statuses.pop(0) if hook.statuses else 200)
            if hook.redirect_to:
                self.send_header("Location", hook.redirect_to)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    hook.url = f"http://127.0.0.1:{server.server_port}"
    with _running(server):
        yield hook


@dataclass
class Mailbox:
    url: str = ""
    recipients: list[str] = field(default_factory=list)
    mails: list[str] = field(default_factory=list)


class _Mail(socketserver.StreamRequestHandler):
    box: Mailbox

    def handle(self) -> None:
        self._say("220 test")
        while line := self.rfile.readline().decode().strip():
            verb = line.split()[0].upper()
            if verb == "RCPT":
                self.box.recipients.append(line)
            if verb == "DATA":
                self._say("354 go on")
                self.box.mails.append(self._read_mail())
            self._say("221 bye" if verb == "QUIT" else "250 ok")
            if verb == "QUIT":
                return

    def _read_mail(self) -> str:
        lines: list[str] = []
        while (line := self.rfile.readline().decode().rstrip("\r\n")) != ".":
            lines.append(line)
        return "\n".join(lines)

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())


@contextmanager
def mail_server() -> Iterator[Mailbox]:
    box = Mailbox()
    handler = type("Handler", (_Mail,), {"box": box})
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), handler)
    box.url = f"smtp+plain://127.0.0.1:{server.server_address[1]}"
    with _running(server):
        yield box


@contextmanager
def _running(server: socketserver.BaseServer) -> Iterator[None]:
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
