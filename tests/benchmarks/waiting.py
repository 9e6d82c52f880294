"""Wait for a server that was started."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx


def until(is_so: Callable[[], bool], *, seconds: float, log: Path) -> None:
    """Raises with the end of the server's log."""
    end = time.monotonic() + seconds
    pause = threading.Event()
    while time.monotonic() < end:
        try:
            if is_so():
                return
        except httpx.HTTPError:
            pass
        pause.wait(0.2)
    raise TimeoutError(f"No answer within {seconds:.0f} s:\n{log.read_text()[-3000:]}")
