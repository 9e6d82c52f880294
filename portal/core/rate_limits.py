"""Rate limits in fixed windows, counted in the cache for all processes.

Without the cache nothing is limited: limits are a second line of defence, and a portal that nobody can
enter would be worse.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass

from redis.exceptions import RedisError

from portal.breaker import NotAsked
from portal.core import cache, clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    max_count: int
    window_seconds: int

    def seconds_left(self) -> int:
        """Return the seconds left in the current window, at least 1. Windows start at multiples of their length."""
        return self.window_seconds - int(clock.now().timestamp()) % self.window_seconds


def count(limit: Limit, *subject: str) -> bool:
    """Count an event of `subject`; False when it exceeds the limit.

    Counting before comparing limits concurrent events too.
    """
    try:
        number = cache.count(_key(limit, subject), seconds=limit.window_seconds)
    except NotAsked:
        return True
    except (RedisError, OSError) as error:
        logger.warning("%s was not counted: %s", limit.name, error)
        return True
    return number <= limit.max_count


def undo(limit: Limit, *subject: str) -> None:
    """Undo the last count, unless a new window has started."""
    try:
        cache.undo_count(_key(limit, subject))
    except NotAsked:
        return
    except (RedisError, OSError) as error:
        logger.warning("%s was not undone: %s", limit.name, error)


def reset(limit: Limit, *subject: str) -> None:
    try:
        cache.delete_counter(_key(limit, subject))
    except (RedisError, OSError) as error:
        logger.warning("%s was not reset: %s", limit.name, error)


def _key(limit: Limit, subject: tuple[str, ...]) -> str:
    """Return the key as a digest, because the typed name may be long, or a password."""
    window = int(clock.now().timestamp()) // limit.window_seconds
    text = "\n".join((limit.name, *subject)).encode(errors="replace")
    return f"limit:{window}:{hashlib.sha256(text).hexdigest()}"
