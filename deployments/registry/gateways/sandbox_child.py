"""Run as a script by sandbox_server.py: fork one process for each task, which applies all limits to
itself before it reads anything of the task.

Only libraries are imported before the fork, never an uploaded file: a task starts from the same clean
memory each time, without the time that their import takes. A library that starts threads when it is
imported is not preloaded, because a fork keeps only one of them.

The server speaks JSON on the socket that is its stdin: {"folder", "environment"} with the descriptors of
request, answer, errors and, if it reads an artifact, of the way to its parent starts a process and gets {"pid"}; {"end": pid} waits for it and gets {"status"}.
It ends, with all its processes, when the worker closes the socket or dies.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_MAX_DESCRIPTORS = 4
_MESSAGE_BYTES = 65536
# Messages of libraries that do not raise MemoryError.
_OUT_OF_MEMORY_MESSAGES = ("bad_alloc", "Failed to allocate memory", "Unable to allocate")


def _limit(request: dict[str, Any]) -> None:
    cpu = int(request["cpu_seconds"])
    for what, soft, hard in (
        (resource.RLIMIT_AS, request["memory_bytes"], request["memory_bytes"]),
        (resource.RLIMIT_CPU, cpu, cpu + 2),
        (resource.RLIMIT_FSIZE, request["file_bytes"], request["file_bytes"]),
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_NOFILE, 256, 256),
    ):
        highest = resource.getrlimit(what)[1]
        bounded = hard if highest == resource.RLIM_INFINITY else min(hard, highest)
        resource.setrlimit(what, (min(soft, bounded), bounded))


def _isolate(parent: int) -> None:
    """Die with the server, drop privileges and, if the kernel allows it, the network. The process is also the
    first candidate of the kernel's OOM killer, with a low CPU priority.
    """
    os.nice(10)
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")
    libc = ctypes.CDLL(None, use_errno=True)
    with contextlib.suppress(AttributeError):  # not Linux
        libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # The parent died before prctl.
        os._exit(1)


def _run(request: dict[str, Any]) -> dict[str, Any]:
    from deployments.registry.domain.not_servable import NotServable  # noqa: PLC0415  after the limits

    module, _, name = request["task"].partition(":")
    try:
        task = getattr(importlib.import_module(module), name)
        return {"value": task(request["argument"], *_artifact(request))}
    except NotServable as refusal:
        return {"refused": str(refusal)}
    except MemoryError:
        return {"memory": True}


def _artifact(request: dict[str, Any]) -> list[Any]:
    if request["artifact"] is None:
        return []
    from deployments.registry.domain.artifacts.reading import PipedArtifact  # noqa: PLC0415  after the limits

    return [PipedArtifact(request["artifact"]["descriptor"], request["artifact"]["sizes"])]


def _describe(error: BaseException) -> dict[str, Any]:
    """Describe an unexpected error for the parent, which fails the file with it."""
    cause = f"{type(error).__name__}: {error}"
    if any(sign in cause for sign in _OUT_OF_MEMORY_MESSAGES):
        return {"memory": True}
    return {"broken": cause[:2000]}


def _end(result_fd: int, result: dict[str, Any]) -> None:
    with os.fdopen(result_fd, "wb") as file:
        file.write(json.dumps(result).encode())
    # Skip exit handlers of libraries, which could corrupt the result.
    os._exit(0)


def _enter(message: dict[str, Any], descriptors: list[int], server: int, started: int) -> None:
    """Run the task that the request names, in the forked process. Never returns."""
    os.setsid()
    os.close(started)
    for number, descriptor in enumerate(descriptors):
        os.dup2(descriptor, number)
    os.closerange(len(descriptors), resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    os.chdir(message["folder"])
    os.environ.clear()
    os.environ.update(message["environment"])
    tempfile.tempdir = None  # chosen anew from the environment
    with os.fdopen(os.dup(0), "rb") as file:
        request = json.load(file)
    # Output of libraries goes to stderr.
    result_fd = os.dup(1)
    os.dup2(2, 1)
    _isolate(server)
    _limit(request)
    try:
        result = _run(request)
    except BaseException as error:  # noqa: BLE001  the parent decides
        result = _describe(error)
    _end(result_fd, result)


def _start(message: dict[str, Any], descriptors: list[int]) -> int:
    """Return the process id, once the process leads its own group, so that the worker can kill that group."""
    server = os.getpid()
    has_started, started = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            _enter(message, descriptors, server, started)
        finally:
            os._exit(1)
    os.close(started)
    os.read(has_started, 1)
    os.close(has_started)
    return pid


def _serve(connection: socket.socket) -> None:
    running: set[int] = set()
    while True:
        body, descriptors, _, _ = socket.recv_fds(connection, _MESSAGE_BYTES, _MAX_DESCRIPTORS)
        if not body:
            break
        message = json.loads(body)
        if "end" in message:
            pid = int(message["end"])
            running.discard(pid)
            answer = {"status": os.waitpid(pid, 0)[1]}
        else:
            pid = _start(message, descriptors)
            running.add(pid)
            answer = {"pid": pid}
        for descriptor in descriptors:
            os.close(descriptor)
        connection.sendall(json.dumps(answer).encode())
    for pid in running:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def main() -> None:
    root, *preloaded = sys.argv[1:]
    sys.path.insert(0, root)
    # Where it is installed, XGBoost and LightGBM import it, which takes seconds; no task needs it.
    sys.modules["sklearn"] = None  # type: ignore[assignment]  # None is what imports refuse
    for module in preloaded:
        with contextlib.suppress(ImportError, OSError):
            importlib.import_module(module)
    gc.freeze()
    connection = socket.socket(fileno=os.dup(0))
    with contextlib.suppress(ConnectionError):
        _serve(connection)


if __name__ == "__main__":
    main()
