"""Ports for servers that choose none themselves: given in turn, so that no two get the same.

A port that was free a moment ago may be taken before its server listens: by another server that
looked at the same time, or by a client, whose own port the system draws from a range of its own.
"""

import fcntl
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCALHOST = "127.0.0.1"
_FIRST = 20000
_DRAWN_BY_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Of Linux, where the file above is not readable.
_FIRST_DRAWN = 32768
_FEWEST = 1000


def take(count: int, *, turns: Path | None = None) -> list[int]:
    """Take ports that are free and that none was given recently. `turns` holds whose turn is next.

    Raises OSError if fewer are free.
    """
    last = _first_drawn_by_the_system()
    with _turn(turns or _shared_turns()) as file:
        start = _read(file, last)
        taken: list[int] = []
        for offset in range(last - _FIRST):
            port = _FIRST + (start - _FIRST + offset) % (last - _FIRST)
            if is_unused(port):
                taken.append(port)
            if len(taken) == count:
                os.pwrite(file, f"{port + 1:<6}".encode(), 0)
                return taken
    raise OSError(f"fewer than {count} of the ports {_FIRST} to {last - 1} are free")


def take_one() -> int:
    """Take one free port, as `take` does."""
    return take(1)[0]


def is_unused(port: int) -> bool:
    """Return whether a server may listen on the port of the loopback address, by any rule of reuse."""
    with socket.socket() as probe:
        try:
            probe.bind((LOCALHOST, port))
        except OSError:
            return False
        return True


def hold(port: int) -> socket.socket | None:
    """Return a socket that keeps the port from others until it is closed. None if a program listens on it.

    It does not listen: a server that shares its address (SO_REUSEADDR) still can.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        held.bind((LOCALHOST, port))
    except OSError:
        held.close()
        return None
    return held


def _first_drawn_by_the_system() -> int:
    try:
        first = int(_DRAWN_BY_THE_SYSTEM.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        first = _FIRST_DRAWN
    return first if first >= _FIRST + _FEWEST else _FIRST_DRAWN


def _shared_turns() -> Path:
    return Path(tempfile.gettempdir()) / f"slipway-ports-{os.getuid()}"


@contextmanager
def _turn(path: Path) -> Iterator[int]:
    """Open the file of turns, which one process of the user holds at a time."""
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield file
    finally:
        os.close(file)


def _read(file: int, last: int) -> int:
    """Return the port whose turn is next, or the first one if the file is new or unreadable."""
    try:
        port = int(os.pread(file, 6, 0))
    except ValueError:
        return _FIRST
    return port if _FIRST <= port < last else _FIRST


if __name__ == "__main__":
    sys.stdout.write(" ".join(map(str, take(int(sys.argv[1])))))
