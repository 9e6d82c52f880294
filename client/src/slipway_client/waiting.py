"""Wait for a state with growing pauses and an end."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

from slipway_client.errors import WaitTimedOut

T = TypeVar("T")
_FIRST_PAUSE_SECONDS = 0.5
_LONGEST_PAUSE_SECONDS = 5.0


def wait_for(
    read: Callable[[], T],
    is_done: Callable[[T], bool],
    *,
    seconds: float,
    describe: Callable[[T], str],
    on_change: Callable[[T], None] | None = None,
    sleep: Callable[[float], None] = time.sleep,
) -> T:
    """Read until `is_done`; `on_change` gets the first value and each that differs.

    Raises WaitTimedOut after `seconds`; what is waited for goes on.
    """
    deadline = time.monotonic() + seconds
    pause = _FIRST_PAUSE_SECONDS
    last: T | None = None
    while True:
        value = read()
        if on_change and value != last:
            on_change(value)
            last = value
        if is_done(value):
            return value
        left = deadline - time.monotonic()
        if left <= 0:
            raise WaitTimedOut(
                f"After {seconds:g} s: {describe(value)}. It is still in progress; wait again."
            )
        sleep(min(pause, left))
        pause = min(pause * 1.3, _LONGEST_PAUSE_SECONDS)
