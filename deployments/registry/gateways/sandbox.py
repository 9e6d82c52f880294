"""Run code that reads an untrusted file in a separate process with resource limits.

A task is a module-level function, named "package.module:function", from one JSON value to another.
It raises NotServable to refuse the file. It must not import Django. With access to an artifact, the task
takes it as second argument; the child has no file and no network, so the parent reads for it.

The child has its own session and process group, a closed environment, an empty working folder,
limits on address space, processor time, file size and wall time, no core file, and no network
where the kernel allows user namespaces. Its process group is always killed at the end, and dies
with the worker. The parent only reads the result, which is limited in size.
sandbox_server.py starts it.
"""

from __future__ import annotations

import json
import os
import select
import signal
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any, Final

from django.conf import settings

from deployments.registry.gateways import sandbox_server
from deployments.registry.gateways.sandbox_artifact import Access, ArtifactServer
from deployments.registry.gateways.sandbox_server import Sandboxed

MIB: Final = 2**20
GIB: Final = 2**30
# Reading and loading keep several copies of the file in memory.
_MEMORY_PER_FILE_BYTE: Final = 6
_CPU_SECONDS_PER_GIB: Final = 60
# On a busy machine, a process gets only a fraction of a CPU.
_WALL_PER_CPU_SECOND: Final = 5
_FILE_BYTES: Final = 64 * MIB
_MAX_RESULT_BYTES: Final = 32 * MIB
_CHECK_EVERY_SECONDS: Final = 0.5
# Single-threaded: otherwise libraries reserve address space for every CPU.
_ENVIRONMENT: Final = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "MALLOC_ARENA_MAX": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    memory_bytes: int
    cpu_seconds: float
    wall_seconds: float
    file_bytes: int = _FILE_BYTES


class DeathCause(StrEnum):
    TIME = "time"
    MEMORY = "memory"
    CRASH = "crash"


@dataclass(frozen=True, slots=True)
class Finished:
    value: Any


@dataclass(frozen=True, slots=True)
class Refused:
    """The task refused the file. The message is shown to users."""

    message: str


@dataclass(frozen=True, slots=True)
class Broken:
    """The task raised an unexpected error. `cause` has its class and message."""

    cause: str


@dataclass(frozen=True, slots=True)
class Died:
    """The process ended without a result. `detail` describes why."""

    cause: DeathCause
    detail: str


Outcome = Finished | Refused | Broken | Died


def limits_for(file_bytes: int) -> SandboxLimits:
    """Return the limits of a task. Memory: the base + 6 x the file. CPU: the base + 60 s per GiB. Wall time: 5
    x CPU.
    """
    cpu_seconds = settings.SLIPWAY_EXAMINATION_CPU_SECONDS + _CPU_SECONDS_PER_GIB * (
        file_bytes / GIB
    )
    return SandboxLimits(
        memory_bytes=settings.SLIPWAY_EXAMINATION_MEMORY_MIB * MIB
        + _MEMORY_PER_FILE_BYTE * file_bytes,
        cpu_seconds=cpu_seconds,
        wall_seconds=_WALL_PER_CPU_SECOND * cpu_seconds,
    )


def run(
    task: str,
    argument: Any,
    *,
    limits: SandboxLimits,
    while_running: Callable[[], None] = lambda: None,
    access: Access | None = None,
) -> Outcome:
    """Run a task in a process of its own. `while_running` is called about twice a second; when it raises, the
    process is killed. So do errors of reading and writing files.
    """
    with (
        tempfile.TemporaryDirectory(prefix="slipway-sandbox-") as folder,
        tempfile.TemporaryFile() as request,
        tempfile.TemporaryFile() as answer,
        tempfile.TemporaryFile() as errors,
        ArtifactServer(access) as server,
    ):
        request.write(_request(task, argument, limits, server))
        request.seek(0)
        environment = {**_ENVIRONMENT, **_library_path(), "HOME": folder, "TMPDIR": folder}
        process = sandbox_server.start(
            folder,
            environment,
            [request.fileno(), answer.fileno(), errors.fileno(), *server.passed],
        )
        server.close_passed()
        try:
            is_in_time = _wait(process, limits, while_running, server)
        finally:
            code = process.kill_group()
        if not is_in_time:
            return Died(DeathCause.TIME, f"it took longer than {limits.wall_seconds:.0f} seconds")
        return _outcome(code, limits, answer, _tail(errors))


def _request(task: str, argument: Any, limits: SandboxLimits, server: ArtifactServer) -> bytes:
    request = {
        "artifact": server.description,
        "task": task,
        "argument": argument,
        "memory_bytes": limits.memory_bytes,
        "cpu_seconds": max(round(limits.cpu_seconds), 1),
        "file_bytes": limits.file_bytes,
    }
    return json.dumps(request).encode()


def _library_path() -> dict[str, str]:
    """Return the library path, which interpreters outside the system directories need to find their own library."""
    path = os.environ.get("LD_LIBRARY_PATH")
    return {"LD_LIBRARY_PATH": path} if path else {}


def _wait(
    process: Sandboxed,
    limits: SandboxLimits,
    while_running: Callable[[], None],
    server: ArtifactServer,
) -> bool:
    """Wait for the end without reaping, so that the process id stays valid. False after the limit, which
    is on the child's time: a slow store does not make a file one that cannot be read.
    """
    deadline = time.monotonic() + limits.wall_seconds
    checked = time.monotonic()
    watch = os.pidfd_open(process.pid)
    try:
        while (remaining := deadline - time.monotonic()) > 0:
            ready = _poll([watch, *server.watched], min(remaining, _CHECK_EVERY_SECONDS))
            if watch in ready:
                server.drain()
                return True
            if ready:
                began = time.monotonic()
                server.answer()
                deadline += time.monotonic() - began
            if not ready or time.monotonic() - checked > _CHECK_EVERY_SECONDS:
                while_running()
                checked = time.monotonic()
    finally:
        os.close(watch)
    return False


def _poll(descriptors: list[int], seconds: float) -> set[int]:
    poll = select.poll()
    for descriptor in descriptors:
        poll.register(descriptor, select.POLLIN)
    return {descriptor for descriptor, _ in poll.poll(seconds * 1000)}


def _outcome(code: int, limits: SandboxLimits, answer: IO[bytes], errors: str) -> Outcome:
    if code == 0:
        return _read_result(answer, limits)
    if code == -signal.SIGXCPU:
        return Died(
            DeathCause.TIME, f"it used more than {limits.cpu_seconds:.0f} seconds of CPU time"
        )
    is_out_of_memory = code == -signal.SIGKILL or any(
        sign in errors for sign in ("bad_alloc", "MemoryError", "annot allocate memory")
    )
    if is_out_of_memory:
        return _out_of_memory(limits)
    what = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return Died(DeathCause.CRASH, f"the reader process crashed ({what})")


def _read_result(answer: IO[bytes], limits: SandboxLimits) -> Outcome:
    answer.seek(0)
    body = answer.read(_MAX_RESULT_BYTES + 1)
    if len(body) > _MAX_RESULT_BYTES:
        return Broken(f"the result is larger than {_MAX_RESULT_BYTES // MIB} MiB")
    try:
        response = json.loads(body)
    except (ValueError, RecursionError):
        return Died(DeathCause.CRASH, "the reader process returned no result")
    match response:
        case {"value": value}:
            return Finished(value)
        case {"refused": str(message)}:
            return Refused(message)
        case {"broken": str(cause)}:
            return Broken(cause)
    return _out_of_memory(limits)


def _out_of_memory(limits: SandboxLimits) -> Died:
    return Died(
        DeathCause.MEMORY, f"it needed more than {limits.memory_bytes // MIB:,} MiB of memory"
    )


def _tail(errors: IO[bytes]) -> str:
    size = errors.seek(0, os.SEEK_END)
    errors.seek(max(0, size - 4000))
    return errors.read(4000).decode(errors="replace")
