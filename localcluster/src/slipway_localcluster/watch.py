"""Watches: a stream of changes from a resourceVersion on, filtered like a list."""

import asyncio
import json
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass

from slipway_localcluster.errors import ApiError, BadRequest, Gone, JsonObject
from slipway_localcluster.kinds import Kind
from slipway_localcluster.selectors import Selector
from slipway_localcluster.store import Store, WatchEvent

_BOOKMARK_SECONDS = 10.0
_POLL_SECONDS = 2.0
_INITIAL_EVENTS_END = {"annotations": {"k8s.io/initial-events-end": "true"}}

Render = Callable[[JsonObject], JsonObject]


@dataclass(frozen=True, slots=True)
class WatchRequest:
    kind: Kind
    namespace: str | None
    selector: Selector
    resource_version: str
    timeout_seconds: float
    allows_bookmarks: bool
    sends_initial_events: bool
    render: Render


class Hub:
    """Wakes the watches of one event loop when any thread writes to the store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._changed = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.is_closed = False

    def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._store.add_listener(self._on_write)

    def close(self) -> None:
        """End every watch and every followed log; safe to call from a signal handler."""
        self.is_closed = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._wake)

    async def wait(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except TimeoutError:
            return

    def _on_write(self, _revision: int) -> None:
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        # Release all current waiters; later ones wait for the next write.
        self._changed.set()
        self._changed = asyncio.Event()


async def stream(
    store: Store, hub: Hub, request: WatchRequest, is_disconnected: Callable[[], Awaitable[bool]]
) -> AsyncIterator[bytes]:
    """Yield lines of JSON until the timeout or until the client disconnects."""
    deadline = time.monotonic() + request.timeout_seconds
    try:
        first, revision = _begin(store, request)
        if first:
            yield first
        bookmarked_at = time.monotonic()
        while time.monotonic() < deadline and not hub.is_closed:
            # Created before the read, so that a write in between is not missed.
            changes = asyncio.ensure_future(hub.wait(min(_POLL_SECONDS, request.timeout_seconds)))
            await asyncio.sleep(0)
            lines, revision = _changes(store, request, revision)
            if lines:
                changes.cancel()
                yield lines
                continue
            await changes
            if await is_disconnected():
                return
            if request.allows_bookmarks and time.monotonic() - bookmarked_at > _BOOKMARK_SECONDS:
                bookmarked_at = time.monotonic()
                yield _bookmark(request, revision, {})
    except ApiError as error:
        yield _line("ERROR", error.as_status())


def _begin(store: Store, request: WatchRequest) -> tuple[bytes, int]:
    """Return the initial lines, and the revision from which changes follow."""
    if request.resource_version not in ("", "0") and not request.sends_initial_events:
        if not request.resource_version.isdigit():
            raise BadRequest(f"invalid resource version: {request.resource_version}")
        revision = int(request.resource_version)
        if revision > store.revision:
            # It belongs to another history: the data folder was emptied.
            raise Gone(f"unknown resource version: {revision} ({store.revision})")
        return b"", revision
    objects, revision = store.snapshot(request.kind, request.namespace)
    lines = [
        _line("ADDED", request.render(item)) for item in objects if request.selector.matches(item)
    ]
    if request.sends_initial_events and request.allows_bookmarks:
        lines.append(_bookmark(request, revision, _INITIAL_EVENTS_END))
    return b"".join(lines), revision


def _changes(store: Store, request: WatchRequest, revision: int) -> tuple[bytes, int]:
    newest = store.revision
    if newest == revision:
        return b"", revision
    lines: list[bytes] = []
    for event in store.events_since(revision, request.kind):
        newest = max(newest, event.revision)
        lines += _event_lines(event, request)
    return b"".join(lines), newest


def _event_lines(event: WatchEvent, request: WatchRequest) -> Iterator[bytes]:
    """Yield at most one line. Entering or leaving the selector is ADDED or DELETED."""
    if request.namespace and event.object["metadata"].get("namespace") != request.namespace:
        return
    is_selected = event.type != "DELETED" and request.selector.matches(event.object)
    was_selected = event.previous is not None and request.selector.matches(event.previous)
    if is_selected:
        yield _line("MODIFIED" if was_selected else "ADDED", request.render(event.object))
    elif was_selected:
        yield _line("DELETED", request.render(event.object))


def _bookmark(request: WatchRequest, revision: int, extra: JsonObject) -> bytes:
    kind = request.kind
    metadata = {"resourceVersion": str(revision), **extra}
    marker = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata}
    return _line("BOOKMARK", request.render(marker))


def _line(change: str, obj: JsonObject) -> bytes:
    return json.dumps({"type": change, "object": obj}, separators=(",", ":")).encode() + b"\n"


def default_timeout() -> float:
    """Return half an hour to an hour at random, so that clients do not reconnect all at once."""
    return 1800.0 + secrets.randbelow(1800)
