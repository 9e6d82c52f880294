"""Server-Sent Events from a web process with few threads.

Each open stream occupies a thread, so their number and duration are limited: clients reconnect with
Last-Event-ID. A client that gets no slot receives the current events and a time to reconnect, so that
streams never block other requests.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from rest_framework.renderers import BaseRenderer

MEDIA_TYPE: Final = "text/event-stream"
# Of the eight threads of a process; docs/settings.md gives the number of processes.
MAX_STREAMS: Final = 3
_slots = threading.BoundedSemaphore(MAX_STREAMS)


class EventStreamRenderer(BaseRenderer):
    """A renderer for content negotiation only: the view returns the stream itself; problems are JSON."""

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
def slot() -> Iterator[bool]:
    """Yield whether the caller got one of the slots; release it at the end."""
    has_slot = _slots.acquire(blocking=False)
    try:
        yield has_slot
    finally:
        if has_slot:
            _slots.release()


def format_event(event: str, data: Any, *, event_id: int | None = None) -> str:
    """Format one event. JSON keeps the data on one line, so it cannot end the event early."""
    head = f"id: {event_id}\n" if event_id is not None else ""
    return f"{head}event: {event}\ndata: {json.dumps(data, default=str)}\n\n"


def heartbeat() -> str:
    return ": still here\n\n"


def reconnect_after(seconds: float) -> str:
    return f"retry: {int(seconds * 1000)}\n\n"
