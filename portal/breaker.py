"""One answer on whether Valkey is worth asking, for all that a process asks of it: limits, cache, wake-ups.

Each of these goes on without it, but only after a time-out. The first one is enough: until some seconds later nothing asks
again, then one caller tries for all.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from threading import Lock
from typing import Final, TypeVar

from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as NoConnection
from redis.exceptions import TimeoutError as NoAnswer

logger = logging.getLogger(__name__)

T = TypeVar("T")

PAUSE_SECONDS: Final = 10.0
_FAILURES: Final = (NoConnection, NoAnswer, OperationalError, OSError)


class NotAsked(NoConnection):
    """A service was not called, because it did not respond within the last seconds."""


class Breaker:
    def __init__(self, *, seconds: float = PAUSE_SECONDS) -> None:
        self._seconds = seconds
        self._lock = Lock()
        # By `time.monotonic`; None while it answers.
        self._asks_again_at: float | None = None

    def ask(self, call: Callable[[], T]) -> T:
        """Run `call` and return its result. Raises NotAsked, or what `call` raises."""
        if self._asks_again_at is not None:
            self._let_one_try()
        try:
            answer = call()
        except _FAILURES as error:
            self._pause(error)
            raise
        if self._asks_again_at is not None:
            logger.warning("Valkey answers again")
            self._asks_again_at = None
        return answer

    def forget(self) -> None:
        self._asks_again_at = None

    def _let_one_try(self) -> None:
        """The one who tries moves the time, so that nobody else waits beside it."""
        with self._lock:
            at = time.monotonic()
            if self._asks_again_at is not None and at < self._asks_again_at:
                raise NotAsked("Valkey did not answer a moment ago")
            self._asks_again_at = at + self._seconds

    def _pause(self, error: Exception) -> None:
        with self._lock:
            if self._asks_again_at is None:
                logger.warning("Valkey is not asked for %.0f s: %s", self._seconds, error)
            self._asks_again_at = time.monotonic() + self._seconds


# Cache and broker are one server.
valkey: Final = Breaker()
