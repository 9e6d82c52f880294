"""Server-Sent Events from a web process whose threads are few.

Each stream holds a thread while it is open, so only a few may be open at once, and none for long:
a client comes back by itself with Last-Event-ID. One that finds no place gets what is there now,
and is told to come back later, so streams never keep other requests waiting.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rest_framework.renderers import BaseRenderer

MEDIA_TYPE: Final = "text/event-stream"
# Of the eight threads of a process. docs/settings.md says how many processes there are.
MOST_AT_ONCE: Final = 3
_places = threading.BoundedSemaphore(MOST_AT_ONCE)


class EventStreamRenderer(BaseRenderer):
    """Only for content negotiation; the view answers with the stream itself, problems as JSON."""

    media_type = MEDIA_TYPE
    format = "event-stream"
    charset = "utf-8"

    def render(
        self,
        data: Any,
        accepted_media_type: str | None = None,
        renderer_context: Mapping[str, Any] | None = None,
    ) -> bytes:
        return json.dumps(data, default=str).encode()


@contextmanager
def place() -> Iterator[bool]:
    """Whether the caller may keep its thread; given back at the end."""
    has_place = _places.acquire(blocking=False)
    try:
        yield has_place
    finally:
        if has_place:
            _places.release()


def message(event: str, data: Any, *, event_id: int | None = None) -> str:
    """One event. JSON keeps it on one line, so nothing in the data can end it early."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, default=str)}\n\n"


def heartbeat() -> str:
    return ": still here\n\n"


def come_back(seconds: float) -> str:
    return f"retry: {int(seconds * 1000)}\n\n"
