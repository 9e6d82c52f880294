"""Run the operator's program that loads a repository in a Triton of this machine, in a process group of its own."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shlex
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings

from deployments.registry.domain.load_tests import results
from deployments.registry.domain.load_tests.results import LoadOutcome, LoadTest

_CHECK_EVERY_SECONDS: Final = 0.5
# The program ends within the limit that it is given; starting it takes a while too.
_GRACE_SECONDS: Final = 15
_ROOT: Final = Path(__file__).resolve().parents[3]
_MAX_RESULT_BYTES: Final = 65_536
_MAX_CAUSE_BYTES: Final = 300


def is_available() -> bool:
    return bool(settings.SLIPWAY_LOAD_TEST_COMMAND)


def run(
    folder: Path, model: str, *, memory_mib: int, seconds: float, while_running: Callable[[], None]
) -> LoadTest:
    """Run the load test program. `folder` has `models/` and `requests/`;
    localcluster/src/slipway_localcluster/load_test, the command of the demo, says what the program does and
    answers.

    `while_running` is called twice a second; when it raises, the processes are killed.
    """
    command = [
        *shlex.split(settings.SLIPWAY_LOAD_TEST_COMMAND),
        f"--folder={folder}",
        f"--model={model}",
        f"--memory-mib={memory_mib}",
        f"--seconds={seconds:g}",
    ]
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
        try:
            process = subprocess.Popen(  # noqa: S603  the operator's command
                command,
                stdin=subprocess.DEVNULL,
                stdout=answer,
                stderr=errors,
                cwd=_ROOT,
                env=_environment(folder),
                start_new_session=True,
            )
        except OSError as error:
            return _no_runtime(f"does not start: {error.strerror}")
        try:
            is_in_time = _wait(process, seconds + _GRACE_SECONDS, while_running)
        finally:
            # Not reaped yet, so the id of the group is still its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if not is_in_time:
            return LoadTest(LoadOutcome.LATE, f"it took longer than {seconds:g} seconds")
        return _result(answer, errors)


def _environment(folder: Path) -> dict[str, str]:
    """Return the environment of the test, without any secret of the worker."""
    kept = {name: os.environ[name] for name in ("LD_LIBRARY_PATH",) if name in os.environ}
    return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(folder), **kept}


def _wait(
    process: subprocess.Popen[bytes], seconds: float, while_running: Callable[[], None]
) -> bool:
    """Wait for the end without reaping. False after the limit."""
    deadline = time.monotonic() + seconds
    watch = os.pidfd_open(process.pid)
    try:
        while time.monotonic() < deadline:
            if select.select([watch], [], [], _CHECK_EVERY_SECONDS)[0]:
                return True
            while_running()
    finally:
        os.close(watch)
    return False


def _result(answer: IO[bytes], errors: IO[bytes]) -> LoadTest:
    answer.seek(0)
    try:
        result: dict[str, Any] = json.loads(answer.read(_MAX_RESULT_BYTES))
        return results.from_json(result)
    except (ValueError, TypeError, KeyError):
        errors.seek(max(errors.seek(0, os.SEEK_END) - _MAX_CAUSE_BYTES, 0))
        cause = errors.read().decode(errors="replace").strip()
        return _no_runtime(f"ended without a result: {cause}")


def _no_runtime(problem: str) -> LoadTest:
    return LoadTest(LoadOutcome.NO_RUNTIME, f"the program that loads models {problem}")
