"""Start the parts in order, report when each is ready, and stop them all."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from slipway_demo import REPOSITORY, listeners
from slipway_demo.parts import Part
from slipway_demo.people import ROLES
from slipway_demo.ports import PortTaken
from slipway_demo.state import Folder
from slipway_demo.supervision import Control

_TICK_SECONDS = 0.15
# Ten times what a busy laptop needs: a part that fails at once says so in its log.
_LONGEST_START_SECONDS = 300
_RUNNING = 20
# BACKOFF: it ended while it started.
_RETRIED = 30
# Readings in a row that find another program on a part's port, before it counts as taken.
_READINGS = 3
_SETTLED_SECONDS = 2


class PartFailed(Exception):
    """A part did not become ready; the message holds the end of its log."""


class Stopped(Exception):
    """Ctrl-C, SIGTERM or a closed terminal."""


_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def stop_on_signals() -> None:
    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    for number in _ENDING:
        signal.signal(number, stop)


def _ignore_signals() -> None:
    """Let no second Ctrl-C end this program before its parts."""
    for number in _ENDING:
        signal.signal(number, signal.SIG_IGN)


class Launcher:
    def __init__(
        self, *, folder: Folder, parts: Sequence[Part], supervisor: subprocess.Popen[bytes]
    ) -> None:
        self._folder = folder
        self._parts = parts
        self._supervisor = supervisor
        self._control = Control(folder)
        self._ready: set[str] = set()
        self._started: set[str] = {part.name for part in parts if not part.needs}
        self._pids: dict[str, int] = {}
        self._foreign: Counter[str] = Counter()
        self._began = time.monotonic()

    def bring_up(self, *, prepare: Callable[[], None]) -> None:
        """Start everything; `prepare` (migrations, seed) runs while the first parts come up.

        Raises PartFailed, and PortTaken if another program listens where a part should.
        """
        prepare()
        self._say("database", "migrated and seeded")
        deadline = self._began + _LONGEST_START_SECONDS
        while len(self._ready) < len(self._parts):
            self._tick()
            if time.monotonic() > deadline or self._supervisor.poll() is not None:
                raise PartFailed(self._what_is_missing())
            time.sleep(_TICK_SECONDS)

    def watch(self) -> None:
        """Run until a signal; report restarted parts."""
        while self._supervisor.poll() is None:
            for name, status in self._control.statuses().items():
                self._compare(name, int(status["pid"]))
            time.sleep(1)
        raise PartFailed(f"The supervisor stopped. Its log: {self._folder.logs}/supervisord.log")

    def shut_down(self) -> None:
        """Stop every part in reverse order of start, and kill those that remain with what they started."""
        _ignore_signals()
        self._remember_pids()
        if self._supervisor.poll() is None:
            self._supervisor.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._supervisor.wait(sum(part.stop_seconds for part in self._parts))
        if self._supervisor.poll() is None:
            self._supervisor.kill()
            self._supervisor.wait()
        for pid in self._pids.values():
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self._end_servers_of_pods()

    def _end_servers_of_pods(self) -> None:
        """End those that the cluster left because it was killed: they have groups of their own."""
        command = (sys.executable, "-m", "slipway_localcluster.end_processes", "--data-dir")
        subprocess.run([*command, str(self._folder.root / "cluster")], cwd=REPOSITORY, check=False)

    def _tick(self) -> None:
        for part in self._parts:
            if part.name in self._ready:
                continue
            if part.name not in self._started and self._ready.issuperset(part.needs):
                self._control.start(part.name)
                self._started.add(part.name)
            elif part.name in self._started and self._is_ready(part):
                self._ready.add(part.name)
                self._say(part.name, part.place)

    def _is_ready(self, part: Part) -> bool:
        if part.is_ready is None:
            status = self._status(part)
            is_running = status.get("state") == _RUNNING
            return is_running and status["now"] - status["start"] >= _SETTLED_SECONDS
        is_answering = part.is_ready()
        status = self._status(part)
        if part.port is None or not (is_answering or status.get("state") == _RETRIED):
            return is_answering
        is_own = listeners.listens(int(status.get("pid") or 0), part.port)
        # A part that was restarted between both readings looks like another program, once.
        self._foreign[part.name] = self._foreign[part.name] + 1 if is_own is False else 0
        if self._foreign[part.name] > _READINGS:
            raise PortTaken(part.name, part.port)
        return is_answering and bool(is_own)

    def _status(self, part: Part) -> Mapping[str, Any]:
        return self._control.statuses().get(part.name, {})

    def _remember_pids(self) -> None:
        for name, status in self._control.statuses().items():
            if status["pid"]:
                self._pids[name] = int(status["pid"])

    def _compare(self, name: str, pid: int) -> None:
        before = self._pids.get(name)
        if pid and before and pid != before:
            print(f"  {name} stopped and was restarted. Its log: {self._log_of(name)}")
        if pid:
            self._pids[name] = pid

    def _say(self, name: str, what: str) -> None:
        print(
            f"  {name:<9} ready after {time.monotonic() - self._began:4.1f} s   {what}", flush=True
        )

    def _what_is_missing(self) -> str:
        missing = [part.name for part in self._parts if part.name not in self._ready]
        name = missing[0]
        return (
            f"{', '.join(missing)} did not become ready in {_LONGEST_START_SECONDS} s. "
            f"The end of {self._log_of(name)}:\n{_tail(self._log_of(name))}"
        )

    def _log_of(self, name: str) -> Path:
        return self._folder.logs / f"{name}.log"


def _tail(path: Path, lines: int = 25) -> str:
    return (
        "\n".join(path.read_text(errors="replace").splitlines()[-lines:]) if path.exists() else ""
    )


def greeting(folder: Folder, passwords: Mapping[str, str], web_url: str) -> str:
    rows = "\n".join(f"    {name:<11} {passwords[name]:<20} {role}" for name, role in ROLES.items())
    return f"""
  Slipway is ready: {web_url}

  Sign in as
    {"user":<11} {"password":<20} is
{rows}

  Upload this model:      {folder.samples}/filetype.onnx
  and as its version 2:   {folder.samples}/filetype-int8.onnx
  kubectl:                export KUBECONFIG={folder.kubeconfig}
  From Python:            docs/notebooks/quickstart.ipynb

  Ctrl-C stops everything; `make demo` continues where you left off; `make demo-reset` starts over.
"""
