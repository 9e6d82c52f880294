"""Servers as children of this process: each with a log, and none outlives it."""

from __future__ import annotations

import os
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.waiting import PATIENCE_SECONDS

# Of util-linux: a child is killed when its parent is gone, however that ended. An API server whose
# etcd is gone would never end by SIGTERM.
_END_WITH_PARENT = ("setpriv", "--pdeathsig", "SIGKILL")
_STOP_SECONDS = 15
_LOG_TAIL = 4000


class Server:
    def __init__(
        self,
        command: Sequence[str | Path],
        *,
        folder: Path,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.name = Path(command[0]).name
        self._log = folder / f"{self.name}.log"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*_END_WITH_PARENT, *(str(part) for part in command)],
                cwd=folder,
                env={**os.environ, **(environment or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def wait_until_ready(self, health: str, context: ssl.SSLContext | None = None) -> None:
        """`health` is a URL that answers 200 once the server is ready."""
        self._wait_until(lambda: _answers(health, context))

    def wait_until_listening(self, port: int) -> None:
        self._wait_until(lambda: _listens(port))

    def _wait_until(self, is_done: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < end:
            if self._process.poll() is not None:
                raise AssertionError(f"{self.name} ended.\n{self.log_tail()}")
            if is_done():
                return
            time.sleep(0.1)
        raise AssertionError(f"{self.name} is not ready.\n{self.log_tail()}")

    def log_tail(self) -> str:
        return self._log.read_text(errors="replace")[-_LOG_TAIL:]

    def kill(self) -> None:
        """End it at once, as a crash does. It may have ended."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def _answers(url: str, context: ssl.SSLContext | None) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2, context=context) as answer:
            return bool(answer.status == 200)
    except (OSError, urllib.error.URLError):
        return False


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.settimeout(2)
        return probe.connect_ex(("127.0.0.1", port)) == 0
