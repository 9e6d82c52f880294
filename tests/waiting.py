"""Bounded polling of real processes."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

# Of every wait: a machine at a tenth of its speed is no failure, and what is ready ends it at once.
PATIENCE_SECONDS = 480
PATIENCE_MS = PATIENCE_SECONDS * 1000

T = TypeVar("T")


def pause(since: float) -> None:
    """Between two passes, of which the last began at `since` by the monotonic clock: four times as long
    as it took, 0.5 to 2 seconds, so that a test leaves the processor to what it waits for. Not where
    a state is to be met that does not last.
    """
    time.sleep(min(max(0.5, 4 * (time.monotonic() - since)), 2))


def wait_for(
    what: str | Callable[[], object],
    read: Callable[[], T | None],
    *,
    patience: float = PATIENCE_SECONDS,
) -> T:
    """The first true answer of `read`; `what` says what was waited for, or how things stand.

    Between two reads it sleeps three times as long as one took, 0.1 to 0.5 seconds: a read of a page or of REST
    takes the processor from what it waits for.
    """
    end = time.monotonic() + patience
    began = time.monotonic()
    while not (answer := read()):
        if time.monotonic() > end:
            awaited = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {patience:g} s: {awaited}")
        time.sleep(min(max(0.1, 3 * (time.monotonic() - began)), 0.5))
        began = time.monotonic()
    return answer
