"""When the lines of containers' logs were written, as the node agent noticed it: the processes write to
their logs themselves.

Beside `NAME.log` lies `NAME.log.times`, with a line for each time the log had grown: its size, and the
seconds since 1970.
"""

import io
import os
from bisect import bisect_right
from datetime import UTC, datetime
from pathlib import Path

from slipway_localcluster.logs import LogLine

_ENDING = ".times"


class LogTimes:
    """The times of the lines in one pod's logs."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._sizes: dict[Path, int] = {}

    def note(self) -> None:
        """Record the sizes of the logs that changed. What was written since the last call has the time of its log's
        last change.
        """
        for log in self._directory.glob("*.log"):
            status = log.stat()
            times = _times_of(log)
            if log not in self._sizes:
                sizes = [size for size, _ in _noted(times)]
                self._sizes[log] = sizes[-1] if sizes else 0
            if status.st_size == self._sizes[log]:
                continue
            # A log that became shorter is another one.
            mode = "a" if status.st_size > self._sizes[log] else "w"
            with times.open(mode) as file:
                file.write(f"{status.st_size} {status.st_mtime:.6f}\n")
            self._sizes[log] = status.st_size


def keep_as(log: Path, kept: Path) -> None:
    """Move the log, with its times."""
    log.replace(kept)
    times = _times_of(log)
    if times.exists():
        times.replace(_times_of(kept))


class LogFile:
    """Held open: a follower reads the last lines of a pod whose folder is gone already."""

    def __init__(self, log: Path, *, is_previous: bool = False) -> None:
        """`is_previous`: of a run that has ended."""
        self._log = log
        self._is_previous = is_previous
        self._file = log.open("rb")
        self._times: list[tuple[int, float]] = []

    def lines(self) -> list[LogLine]:
        if self._is_in_place():
            self._times = _noted(_times_of(self._log))
        sizes = [size for size, _ in self._times]
        self._file.seek(0)
        data = self._file.read()
        changed_at = os.fstat(self._file.fileno()).st_mtime
        lines: list[LogLine] = []
        start = 0
        for line in io.BytesIO(data):
            index = bisect_right(sizes, start)
            seconds = self._times[index][1] if index < len(sizes) else changed_at
            at = datetime.fromtimestamp(seconds, UTC)
            lines.append(LogLine(at, line.decode(errors="replace")))
            start += len(line)
        return lines

    def has_ended(self) -> bool:
        return self._is_previous or not self._is_in_place()

    def _is_in_place(self) -> bool:
        """Return whether the opened file is still the log. False if another file, or none, is in its place."""
        try:
            return os.path.samestat(self._log.stat(), os.fstat(self._file.fileno()))
        except FileNotFoundError:
            return False

    def close(self) -> None:
        self._file.close()


def _times_of(log: Path) -> Path:
    return log.with_name(log.name + _ENDING)


def _noted(times: Path) -> list[tuple[int, float]]:
    """A last line that was cut off by a crash is left out."""
    if not times.exists():
        return []
    rows = [row.split() for row in times.read_text().splitlines(keepends=True) if row[-1] == "\n"]
    return [(int(size), float(seconds)) for size, seconds in rows]
