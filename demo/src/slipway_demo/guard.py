"""Runs a program that ends when its parent ends, however the parent ends.

`python guard.py PROGRAM ARGUMENTS…` asks the kernel to send SIGTERM at the death of the parent and
becomes the program. So a killed supervisor leaves no part behind that would block the next start.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main() -> None:
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit("the parent ended before the program began")
    os.execvp(sys.argv[1], sys.argv[1:])  # noqa: S606  there is no shell, on purpose


if __name__ == "__main__":
    main()
