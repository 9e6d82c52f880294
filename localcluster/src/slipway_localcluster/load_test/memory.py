"""Resident memory of a process and all that it started."""

from __future__ import annotations

import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_MIB = 2**20
# Fields of /proc/PID/stat after the command name.
_PARENT, _RESIDENT_PAGES = 1, 21


def resident_mib(root: int) -> int:
    """Return the resident MiB of `root` and all its children. Libraries that they share count once for each."""
    children, pages = defaultdict(list), {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
                children[int(fields[_PARENT])].append(int(folder.name))
                pages[int(folder.name)] = int(fields[_RESIDENT_PAGES])
    members, total = [root], 0
    for member in members:
        total += pages.get(member, 0)
        members.extend(children[member])
    return -(-total * _PAGE_BYTES // _MIB)
