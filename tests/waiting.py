"""Bounded polling of real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# Of every wait: a machine at a tenth of its speed is no failure, and what is ready ends it at once.
PATIENCE_SECONDS = 480
PATIENCE_MS = PATIENCE_SECONDS * 1000

T = TypeVar("T")


def wait_for(
    what: str | Callable[[], object],
    read: Callable[[], T | None],
    *,
    patience: float = PATIENCE_SECONDS,
) -> T:
    """The first true answer of `read`; `what` says what was waited for, or how things stand."""
    end = time.monotonic() + patience
    while not (answer := read()):
        if time.monotonic() > end:
            awaited = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {patience:g} s: {awaited}")
        time.sleep(0.1)
    return answer
