"""Failed sign-ins are counted per name and address, so that passwords cannot be tried by the thousand.

The count lives in the cache. Without the cache people can still sign in: the throttle is a second
wall behind the password, and a portal that nobody can enter would be the worse failure.
"""

from __future__ import annotations

import hashlib
import logging
from typing import Final

from django.core.cache import cache
from redis.exceptions import RedisError

logger = logging.getLogger(__name__)

MOST_FAILURES: Final = 10
WINDOW_SECONDS: Final = 15 * 60


def begin(*, username: str, address: str) -> bool:
    """Count an attempt before the password is looked at; False when there were too many.

    Counting first bounds attempts that come at the same moment too.
    """
    key = _key(username, address)
    try:
        cache.add(key, 0, timeout=WINDOW_SECONDS)
        count = cache.incr(key)
    except ValueError:
        # The window ended between the two calls.
        return True
    except RedisError as error:
        logger.warning("failed sign-ins are not counted: %s", error)
        return True
    return count <= MOST_FAILURES


def succeeded(*, username: str, address: str) -> None:
    """Whoever knows the password begins at zero again."""
    try:
        cache.delete(_key(username, address))
    except RedisError as error:
        logger.warning("failed sign-ins are not forgotten: %s", error)


def _key(username: str, address: str) -> str:
    """A digest: what people type as a name may be long, or be their password."""
    typed = f"{username.strip().lower()}\n{address}"
    return f"sign-in:{hashlib.sha256(typed.encode()).hexdigest()}"
