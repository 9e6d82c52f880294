"""Start sandboxed processes by a fork of a server that has the libraries loaded, one server per worker.

Starting Python and importing NumPy, ONNX and Treelite takes longer than reading most files does.
The server reads no uploaded file; see sandbox_child.py for what it and the processes do.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

_CHILD: Final = Path(__file__).with_name("sandbox_child.py")
_ROOT: Final = Path(__file__).resolve().parents[3]
# None of them starts a thread. ONNX Runtime does, and is imported by the tasks that need it.
_PRELOADED: Final = (
    "numpy",
    "onnx",
    "treelite",
    "xgboost",
    "lightgbm",
    "deployments.registry.domain.not_servable",
    "deployments.registry.domain.onnx",
    "deployments.registry.domain.forests.reading",
    "modelscan.modelscan",
    "deployments.registry.gateways.scanners.task",
)
_MESSAGE_BYTES: Final = 4096


class _Server:
    """The server that forks sandboxes. `owner` is the process that started it: a forked copy of the worker
    needs a server of its own.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self.owner = os.getpid()
        # A killed process closes its socket a moment before it can be reaped.
        self.is_broken = False
        self._lock = threading.Lock()
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603  our own script, by our own interpreter
                [sys.executable, "-I", str(_CHILD), str(_ROOT), *_PRELOADED],
                stdin=theirs.fileno(),
                stdout=subprocess.DEVNULL,
                cwd="/",
                env=dict(environment),
                start_new_session=True,
            )

    def is_usable(self) -> bool:
        is_running = self._process.poll() is None and not self.is_broken
        return self.owner == os.getpid() and is_running

    def call(self, message: Mapping[str, Any], descriptors: Sequence[int] = ()) -> dict[str, Any]:
        """Send a request to the server and return its answer. Raises OSError when the server ended."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(message).encode()], list(descriptors))
            body = self._socket.recv(_MESSAGE_BYTES)
        if not body:
            raise ConnectionResetError("the sandbox server ended")
        answer: dict[str, Any] = json.loads(body)
        return answer


class Sandboxed:
    """A process that the server started: the leader of its own session and process group."""

    def __init__(self, server: _Server, pid: int) -> None:
        self._server = server
        self.pid = pid

    def kill_group(self) -> int:
        """Kill the process and its children. The exit code, or the negative number of its signal.

        The server has not reaped the leader yet, so the group id is still its own.
        """
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        try:
            return os.waitstatus_to_exitcode(self._server.call({"end": self.pid})["status"])
        except OSError:
            # Killed with its server, as by the kernel when memory is short.
            return -signal.SIGKILL


_starting: Final = threading.Lock()
_servers: Final[list[_Server]] = []


def start(folder: str, environment: Mapping[str, str], descriptors: Sequence[int]) -> Sandboxed:
    """Start a sandboxed process. `descriptors` are those of the request, the answer, the errors and, if there
    is an artifact, its socket.
    """
    message = {"folder": folder, "environment": dict(environment)}
    for _ in range(2):
        server = _usable_server(environment)
        try:
            return Sandboxed(server, server.call(message, descriptors)["pid"])
        except OSError:
            server.is_broken = True
    raise OSError("the sandbox server does not start")


def _usable_server(environment: Mapping[str, str]) -> _Server:
    with _starting:
        if not (_servers and _servers[0].is_usable()):
            _servers[:] = [_Server(environment)]
        return _servers[0]
