"""Tells which processes listen on a port of 127.0.0.1, from Linux's /proc."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
# Fields of a row of /proc/net/tcp (proc_pid_net(5)); addresses are of the host's byte order, in hexadecimal.
_LOCAL_ADDRESS, _STATE, _INODE = 1, 3, 9
_LISTENING = "0A"
_ADDRESSES = {"0100007F", "00000000"}


def listens(group: int, port: int) -> bool | None:
    """Return whether the processes of a group have the port. None if nobody listens on it.

    False if a process outside the group listens, be it beside one of the group.
    """
    listening = _sockets_of_port(port)
    if not listening:
        return None
    return listening <= _sockets_of_group(group)


def _sockets_of_port(port: int) -> set[str]:
    rows = (line.split() for line in (_PROC / "net" / "tcp").read_text().splitlines()[1:])
    return {
        row[_INODE]
        for row in rows
        if row[_STATE] == _LISTENING
        and row[_LOCAL_ADDRESS].partition(":")[0] in _ADDRESSES
        and int(row[_LOCAL_ADDRESS].partition(":")[2], 16) == port
    }


def _sockets_of_group(group: int) -> set[str]:
    return {inode for pid in _members(group) for inode in _sockets_of_process(pid)}


def _members(group: int) -> Iterator[int]:
    for entry in _PROC.iterdir():
        if entry.name.isdecimal():
            with suppress(OSError):
                if os.getpgid(int(entry.name)) == group:
                    yield int(entry.name)


def _sockets_of_process(pid: int) -> Iterator[str]:
    # A process of another user keeps its files to itself: it is not one of ours.
    with suppress(OSError):
        for file in (_PROC / str(pid) / "fd").iterdir():
            with suppress(OSError):
                target = str(file.readlink())
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")
