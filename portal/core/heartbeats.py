"""Messages that wait in each queue, and its last heartbeat: the sign that beat, broker and a worker live."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from portal.core import cache, clock

EVERY_SECONDS: Final = 30
_KEPT_SECONDS: Final = 7 * 24 * 3600


def beat(queue: str) -> None:
    cache.put(_key(queue), clock.now().timestamp(), seconds=_KEPT_SECONDS)


def last(queue: str) -> datetime | None:
    """Return the time of a queue's last heartbeat. None if there was none within a week, or since the broker lost
    its memory.
    """
    at = cache.get(_key(queue))
    return None if at is None else datetime.fromtimestamp(at, UTC)


def count_messages(queue: str) -> int:
    """Count the messages of a queue that wait for a worker."""
    return cache.count_entries(queue)


def _key(queue: str) -> str:
    return f"heartbeat:{queue}"
