"""Change requests: read, approve, reject, withdraw, wait for the decision."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from slipway_client import waiting
from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.errors import Failed
from slipway_client.types import Change, WaitingRequest

_OPEN = frozenset({"draft", "submitted", "approved", "applying"})


class Changes:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, team: str = "", state: str = "") -> Iterator[Change]:
        pages = self._connection.pages("changes", {"team": team, "state": state})
        return (decode(Change, row) for row in pages)

    def waiting(self, *, kind: str = "", team: str = "") -> Iterator[WaitingRequest]:
        """Iterate over the requests of every kind that you may approve or reject now, oldest first."""
        pages = self._connection.pages("approvals", {"kind": kind, "team": team})
        return (decode(WaitingRequest, row) for row in pages)

    def get(self, change: int) -> Change:
        return decode(Change, self._connection.get(f"changes/{change}"))

    def approve(self, change: Change, *, comment: str = "") -> Change:
        """Approve what `change` shows: refused when its evidence has changed since."""
        body = {"evidence_hash": change.evidence_hash, "comment": comment}
        return decode(Change, self._connection.post(f"changes/{change.id}/approve", body))

    def reject(self, change: int, *, comment: str) -> Change:
        path = f"changes/{change}/reject"
        return decode(Change, self._connection.post(path, {"comment": comment}))

    def withdraw(self, change: int, *, reason: str = "") -> Change:
        path = f"changes/{change}/withdraw"
        return decode(Change, self._connection.post(path, {"reason": reason}))

    def wait(
        self,
        change: int,
        *,
        seconds: float = 900,
        on_change: Callable[[Change], None] | None = None,
    ) -> Change:
        """Wait until the request is done. Raises Failed if it is rejected, withdrawn, expired or failed."""
        ended = waiting.wait_for(
            lambda: self.get(change),
            lambda current: current.state not in _OPEN,
            seconds=seconds,
            describe=lambda current: f"change request {current.id} is {current.state}",
            on_change=on_change,
            sleep=self._connection.sleep,
        )
        if ended.state != "done":
            reason = f": {ended.state_reason}" if ended.state_reason else ""
            raise Failed(f"Change request {ended.id} is {ended.state}{reason}")
        return ended
