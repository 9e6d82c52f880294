"""How often something may happen in a window of time, counted in the cache for all processes.

Without the cache nothing is limited: a limit is a second wall, and a portal that nobody can enter
would be the worse failure.
"""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass

from django.core.cache import cache
from redis.exceptions import RedisError

from portal.core import clock

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Limit:
    name: str
    most: int
    window_seconds: int

    def seconds_left(self) -> int:
        """Of the running window, at least 1. Windows begin at whole multiples of their length."""
        return self.window_seconds - int(clock.now().timestamp()) % self.window_seconds


def count(limit: Limit, *subject: str) -> bool:
    """Count one more of `subject`; False when that is more than the limit allows.

    Counting before looking bounds what comes at the same moment too.
    """
    key = _key(limit, subject)
    try:
        cache.add(key, 0, timeout=limit.window_seconds)
        return int(cache.incr(key)) <= limit.most
    except ValueError:
        # The key expired between the two calls.
        return True
    except (RedisError, OSError) as error:
        logger.warning("%s is not counted: %s", limit.name, error)
        return True


def take_back(limit: Limit, *subject: str) -> None:
    """What was counted last turned out not to count."""
    try:
        cache.decr(_key(limit, subject))
    except ValueError:
        # A new window has begun.
        return
    except (RedisError, OSError) as error:
        logger.warning("%s is not taken back: %s", limit.name, error)


def forget(limit: Limit, *subject: str) -> None:
    try:
        cache.delete(_key(limit, subject))
    except (RedisError, OSError) as error:
        logger.warning("%s is not forgotten: %s", limit.name, error)


def _key(limit: Limit, subject: tuple[str, ...]) -> str:
    """A digest: what people type as a name may be long, or be their password."""
    window = int(clock.now().timestamp()) // limit.window_seconds
    text = "\n".join((limit.name, *subject)).encode(errors="replace")
    return f"limit:{window}:{hashlib.sha256(text).hexdigest()}"
