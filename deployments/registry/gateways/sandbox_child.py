"""Run as a script by sandbox.py: apply all limits to this process, then run one task.

Only the standard library is imported before the limits apply. The request is read from stdin and the
result is written to the original stdout; output of libraries goes to stderr.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
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
    """Die with the worker, drop privileges and, if the kernel allows it, the network.

    Also the first candidate of the kernel's OOM killer, with a low CPU priority.
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
    sys.path.insert(0, request["root"])
    from deployments.registry.domain.not_servable import NotServable  # noqa: PLC0415  after the limits

    module, _, name = request["task"].partition(":")
    try:
        task = getattr(importlib.import_module(module), name)
        return {"value": task(request["argument"])}
    except NotServable as refusal:
        return {"refused": str(refusal)}
    except MemoryError:
        return {"memory": True}


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


def main() -> None:
    request = json.load(sys.stdin)
    result_fd = os.dup(1)
    os.dup2(2, 1)
    _isolate(request["parent"])
    _limit(request)
    sys.excepthook = lambda _, error, __: _end(result_fd, _describe(error))
    _end(result_fd, _run(request))


if __name__ == "__main__":
    main()
