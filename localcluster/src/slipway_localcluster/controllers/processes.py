"""Child processes in groups of their own, recorded on disk so that none outlives the cluster."""

import json
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

LOCALHOST = "127.0.0.1"
_POLL_SECONDS = 0.05
# Fields of /proc/PID/stat after the command name.
_STATE, _GROUP, _STARTED = 0, 2, 19


@dataclass(frozen=True, slots=True)
class Child:
    """A started process; its group id equals its pid."""

    process: subprocess.Popen[bytes]
    record: Path

    def is_running(self) -> bool:
        return self.process.poll() is None

    def exit_code(self) -> int:
        code = self.process.poll()
        # A shell, and so Kubernetes, reports death by a signal as 128 + its number.
        return 0 if code is None else code if code >= 0 else 128 - code

    def terminate(self) -> None:
        if self.is_running():
            _signal_group(self.process.pid, signal.SIGTERM)

    def kill(self) -> None:
        """End the whole group, including children that outlive the leader."""
        _signal_group(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.record.unlink(missing_ok=True)


def start(
    command: Sequence[str], *, environment: Mapping[str, str], log: Path, record: Path
) -> Child:
    """Start a process that writes to `log`; from `record` a later run can end it."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("ab") as output:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=log.parent,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    record.write_text(json.dumps({"pid": process.pid, "started": _started(process.pid)}))
    return Child(process, record)


def end_recorded(record: Path) -> bool:
    """End a process of an earlier, killed run of the cluster; True if it was still running."""
    if not record.is_file():
        return False
    was_running = False
    with suppress(ValueError, KeyError, TypeError):
        recorded = json.loads(record.read_text())
        was_running = _end_group(int(recorded["pid"]), int(recorded["started"]))
    record.unlink(missing_ok=True)
    return was_running


def _end_group(group: int, started: int) -> bool:
    # The kernel does not reuse a pid while a group of that number has members, so members that
    # started no earlier than the leader are ours even when the leader has gone.
    members = [pid for pid in _group_members(group) if _started(pid) >= started]
    is_reused_pid = _started(group) not in (0, started)
    if not members or is_reused_pid:
        return False
    _signal_group(group, signal.SIGKILL)
    deadline = monotonic() + 5
    while any(_is_alive(pid) for pid in members) and monotonic() < deadline:
        sleep(_POLL_SECONDS)
    return True


def _group_members(group: int) -> list[int]:
    pids = (int(item.name) for item in Path("/proc").iterdir() if item.name.isdigit())
    return [pid for pid in pids if _stat(pid)[_GROUP : _GROUP + 1] == [str(group)]]


def _is_alive(pid: int) -> bool:
    """A leader may be a zombie while its other threads still hold its sockets."""
    return _stat(pid)[_STATE : _STATE + 1] not in ([], ["Z"]) or _thread_count(pid) > 1


def _thread_count(pid: int) -> int:
    try:
        return sum(1 for _ in Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return 0


def _started(pid: int) -> int:
    """Start time in clock ticks since boot; 0 when there is no such process."""
    fields = _stat(pid)
    return int(fields[_STARTED]) if fields else 0


def _stat(pid: int) -> list[str]:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.killpg(group, number)
