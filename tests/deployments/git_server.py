"""A real Git server on 127.0.0.1: `git http-backend` behind HTTP with a password."""

from __future__ import annotations

import base64
import io
import os
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from django.test import override_settings

USERNAME, TOKEN = "slipway", "s3cr3t-t0ken"


class GitServer:
    """One bare repository. `before_receive` runs before each push reaches it."""

    def __init__(self, root: Path) -> None:
        self.path = root / "fleet.git"
        self.git("init", "--bare", "--initial-branch=main", str(self.path), within=root)
        self.git("config", "http.receivepack", "true")
        self.before_receive: Callable[[], None] = lambda: None
        self.requests = 0
        self.url = ""

    def git(self, *arguments: str, stdin: str = "", within: Path | None = None) -> str:
        identity = {
            "GIT_AUTHOR_NAME": "Ana",
            "GIT_AUTHOR_EMAIL": "ana@example.com",
            "GIT_COMMITTER_NAME": "Ana",
            "GIT_COMMITTER_EMAIL": "ana@example.com",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(self.path.parent),
        }
        done = subprocess.run(
            ["git", *arguments],
            cwd=within or self.path,
            input=stdin,
            capture_output=True,
            text=True,
            check=True,
            timeout=20,
            env={"PATH": os.environ["PATH"], **identity},
        )
        return done.stdout.strip()

    def commits(self) -> list[str]:
        """Subjects, oldest first."""
        return self.git("log", "--reverse", "--format=%s", "main").splitlines()

    def files(self) -> list[str]:
        return self.git("ls-tree", "-r", "--name-only", "main").splitlines()

    def tree(self) -> dict[str, str]:
        """Path to text of all files on main."""
        if not self.has_main or not self.files():
            return {}
        made = subprocess.run(
            ["git", "archive", "main"], cwd=self.path, capture_output=True, check=True, timeout=20
        )
        with tarfile.open(fileobj=io.BytesIO(made.stdout)) as packed:
            files = [(model, packed.extractfile(model)) for model in packed if model.isfile()]
            return {one.name: body.read().decode() for one, body in files if body is not None}

    def text(self, path: str) -> str:
        return self.git("show", f"main:{path}")

    def push_by_hand(self, path: str, text: str) -> None:
        """Somebody else's commit on main."""
        parent = f"from {self.git('rev-parse', 'main')}\n" if self.has_main else ""
        self.git(
            "fast-import",
            "--quiet",
            stdin="commit refs/heads/main\ncommitter Ana <ana@example.com> 1700000000 +0000\n"
            f"data 7\nBy hand\n{parent}M 100644 inline {path}\n"
            f"data {len(text.encode())}\n{text}\n",
        )

    @property
    def has_main(self) -> bool:
        return bool(self.git("for-each-ref", "refs/heads/main"))

    def refuse_pushes(self, message: str) -> None:
        hook = self.path / "hooks" / "pre-receive"
        hook.write_text(f"#!/bin/sh\necho '{message}' >&2\nexit 1\n")
        hook.chmod(0o755)

    def allow_pushes(self) -> None:
        (self.path / "hooks" / "pre-receive").unlink()


@contextmanager
def serving(root: Path) -> Iterator[GitServer]:
    server = GitServer(root)
    http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"git": server}))
    server.url = f"http://127.0.0.1:{http.server_port}/fleet.git"
    thread = threading.Thread(
        target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield server
    http.shutdown()
    http.server_close()


_EXPECTED = "Basic " + base64.b64encode(f"{USERNAME}:{TOKEN}".encode()).decode()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    git: GitServer

    def do_GET(self) -> None:
        self._answer(b"")

    def do_POST(self) -> None:
        self._answer(self._body())

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        content = b""
        while size := int(self.rfile.readline(), 16):
            content += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return content

    def _answer(self, body: bytes) -> None:
        self.git.requests += 1
        if self.headers.get("Authorization") != _EXPECTED:
            self._send(401, {"WWW-Authenticate": 'Basic realm="git"'}, b"")
            return
        if self.command == "POST" and self.path.endswith("git-receive-pack"):
            self.git.before_receive()
        path, _, query = self.path.partition("?")
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            timeout=20,
            env={
                "PATH": os.environ["PATH"],
                "GIT_PROJECT_ROOT": str(self.git.path.parent),
                "GIT_HTTP_EXPORT_ALL": "1",
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": "safe.directory",
                "GIT_CONFIG_VALUE_0": "*",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "REMOTE_USER": USERNAME,
                "REMOTE_ADDR": "127.0.0.1",
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "CONTENT_LENGTH": str(len(body)),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.split(": ", 1) for line in head.decode().splitlines())
        status = int(headers.pop("Status", "200").split()[0])
        self._send(status, headers, content)

    def _send(self, status: int, headers: dict[str, str], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_arguments: object) -> None:
        """Quiet."""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    """With the portal's token in its folder of credentials."""
    with serving(tmp_path) as git_server:
        (tmp_path / "tokens").mkdir()
        (tmp_path / "tokens" / "fleet-repo").write_text(f"{TOKEN}\n")
        with override_settings(SLIPWAY_GIT_CREDENTIALS_DIR=str(tmp_path / "tokens")):
            yield git_server
