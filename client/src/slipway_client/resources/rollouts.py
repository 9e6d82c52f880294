"""Rollouts: follow, promote, pause, abort."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator

import httpx

from slipway_client import connection as http
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.types import Rollout, RolloutEvent, RolloutNews

_PAUSE_SECONDS = 1.0
_PAUSE_WITHOUT_CONNECTION_SECONDS = 5.0


class Rollouts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, rollout: int) -> Rollout:
        return decode(Rollout, self._connection.get(f"rollouts/{rollout}"))

    def promote(self, rollout: Rollout, *, comment: str = "") -> Rollout:
        """Promote to the next step, confirming the evidence that `rollout` shows. Refused if it changed."""
        return self._confirm(rollout, "promote", comment)

    def promote_fully(self, rollout: Rollout, *, comment: str = "") -> Rollout:
        """Promote to 100% now, without the steps that are left."""
        return self._confirm(rollout, "promote-fully", comment)

    def pause(self, rollout: int, *, reason: str = "") -> Rollout:
        return self._act(rollout, "pause", {"reason": reason})

    def unpause(self, rollout: int) -> Rollout:
        return self._act(rollout, "unpause", {})

    def finish_watch(self, rollout: int) -> Rollout:
        """End the watch after promotion: the old revision is removed once it is drained."""
        return self._act(rollout, "finish-watch", {})

    def abort(self, rollout: int, *, reason: str = "") -> Rollout:
        """Abort the rollout. All requests go back to the stable revision."""
        return self._act(rollout, "abort", {"reason": reason})

    def news(self, rollout: int, *, after: int = 0, wait: int = 0) -> RolloutNews:
        """Return the events after `after`; with `wait`, once there is one, or after that many seconds."""
        query = {"after": after, "wait": wait}
        return decode(RolloutNews, self._connection.get(f"rollouts/{rollout}/events", query))

    def watch(self, rollout: int) -> Iterator[RolloutEvent | Rollout]:
        """Yield each event and each new state until the rollout ended. Reconnects where it stopped."""
        last, pause = "", _PAUSE_SECONDS
        path = f"rollouts/{rollout}/events"
        while True:
            headers = {"Accept": "text/event-stream", "Last-Event-ID": last}
            try:
                with self._connection.stream(path, headers) as answer:
                    if answer.status_code == httpx.codes.NO_CONTENT:
                        return
                    if answer.is_client_error and answer.status_code != 429:
                        answer.read()
                        http.read(answer, url=self._connection.url)
                    lines = answer.iter_lines() if answer.is_success else iter(())
                    for fields in messages(lines):
                        last = fields.get("id", last)
                        pause = _pause_of(fields, pause)
                        if fields.get("event") == "end":
                            return
                        yield from _items(fields)
            except httpx.TransportError:
                pause = max(pause, _PAUSE_WITHOUT_CONNECTION_SECONDS)
            self._connection.sleep(pause)

    def _confirm(self, rollout: Rollout, action: str, comment: str) -> Rollout:
        body = {"evidence_hash": rollout.evidence_hash, "comment": comment}
        return self._act(rollout.id, action, body)

    def _act(self, rollout: int, action: str, body: dict[str, str]) -> Rollout:
        return decode(Rollout, self._connection.post(f"rollouts/{rollout}/{action}", body))


def messages(lines: Iterable[str]) -> Iterator[dict[str, str]]:
    """Yield the fields of each server-sent event. One that was cut off is left out."""
    fields: dict[str, str] = {}
    for line in lines:
        if not line:
            yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            fields[name] = value.removeprefix(" ")


def _pause_of(fields: dict[str, str], pause: float) -> float:
    retry = fields.get("retry", "")
    return int(retry) / 1000 if retry.isdecimal() else pause


def _items(fields: dict[str, str]) -> Iterator[RolloutEvent | Rollout]:
    kinds: dict[str, type[RolloutEvent] | type[Rollout]] = {
        "event": RolloutEvent,
        "state": Rollout,
    }
    kind = kinds.get(fields.get("event", ""))
    if kind is not None and "data" in fields:
        yield decode(kind, json.loads(fields["data"]))
