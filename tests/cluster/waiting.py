"""Wait for real processes."""

from __future__ import annotations

import time
from collections.abc import Callable

from tests.waiting import PATIENCE_SECONDS


def wait_until(done: Callable[[], bool], why: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not done():
        assert time.monotonic() < end, why()
        time.sleep(0.1)  # bounded polling of real processes
