"""Alerts: read them, silence one for some hours."""

from __future__ import annotations

from collections.abc import Iterator

from slipway_client.connection import Connection
from slipway_client.decoding import decode
from slipway_client.types import Alert


class Alerts:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list(self, *, team: str = "", state: str = "open", kind: str = "") -> Iterator[Alert]:
        """Iterate over your teams' alerts, newest first. An empty state matches any: open, silenced, ended."""
        query = {"team": team, "state": state, "kind": kind}
        return (decode(Alert, row) for row in self._connection.pages("alerts", query))

    def get(self, alert: int) -> Alert:
        return decode(Alert, self._connection.get(f"alerts/{alert}"))

    def silence(self, alert: int, *, hours: int, reason: str) -> Alert:
        """Silence an alert for `hours`. Nobody is notified of it until then. Leads only."""
        body = {"hours": hours, "reason": reason}
        return decode(Alert, self._connection.post(f"alerts/{alert}/silence", body))

    def unsilence(self, alert: int) -> Alert:
        return decode(Alert, self._connection.post(f"alerts/{alert}/unsilence", {}))
